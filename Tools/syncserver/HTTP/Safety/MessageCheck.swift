// What HTTP's parser lets pass, and another server on the way to this one might understand
// otherwise: such requests are refused, so that nobody smuggles one inside another. Stands between
// the parser and the HTTP codec. Spec/operating.md, OPS-5.

import NIOCore
import NIOHTTP1

/// Refuses heads of requests that can be understood in more than one way.
final class MessageCheck: ChannelInboundHandler, RemovableChannelHandler {
    typealias InboundIn = HTTPServerRequestPart
    typealias InboundOut = HTTPServerRequestPart

    private var isRefused = false

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        guard !isRefused else { return }
        guard case .head(var head) = unwrapInboundIn(data) else {
            return context.fireChannelRead(data)
        }
        let codings = head.headers["Transfer-Encoding"]
        let hosts = head.headers["Host"].count
        guard hosts <= 1, hosts == 1 || head.version != .http1_1,
            codings.isEmpty || codings.map({ $0.lowercased() }) == ["chunked"]
        else {
            isRefused = true
            return context.fireErrorCaught(HTTPParserError.invalidHeaderToken)
        }
        // An older client reads until the connection ends unless it says otherwise.
        if head.version != .http1_1, head.headers["Connection"].isEmpty {
            head.headers.add(name: "Connection", value: "close")
        }
        context.fireChannelRead(wrapInboundOut(.head(head)))
    }
}

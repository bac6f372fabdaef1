// Refuses requests that the HTTP parser accepts and a proxy in front of this server might interpret
// differently, so that no request is smuggled inside another. Placed between the parser and the HTTP
// codec. Spec/operations/operating.md, OPS-5 and OPS-20.

import NIOCore
import NIOHTTP1

/// Refuses ambiguous request heads, and ends the input of a connection after its last request.
final class MessageCheck: ChannelInboundHandler, RemovableChannelHandler {
    typealias InboundIn = HTTPServerRequestPart
    typealias InboundOut = HTTPServerRequestPart

    private let gate: InputGate
    private var isRefused = false
    private var isLast = false

    init(_ gate: InputGate) { self.gate = gate }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        guard !isRefused else { return }
        switch unwrapInboundIn(data) {
        case .head(var head):
            guard Self.isClear(head) else {
                isRefused = true
                gate.finish()
                return context.fireErrorCaught(HTTPParserError.invalidHeaderToken)
            }
            if Self.endsConnection(head) {
                isLast = true
                head.headers.replaceOrAdd(name: "Connection", value: "close")
                head.headers.remove(name: "Upgrade")
            }
            context.fireChannelRead(wrapInboundOut(.head(head)))
        case .body: context.fireChannelRead(data)
        case .end:
            // The parser would buffer the input after a request that asks for another protocol.
            if isLast { gate.finish() }
            context.fireChannelRead(data)
        }
    }

    private static func isClear(_ head: HTTPRequestHead) -> Bool {
        let codings = head.headers["Transfer-Encoding"]
        let hosts = head.headers["Host"].count
        return hosts <= 1 && (hosts == 1 || head.version != .http1_1)
            // HTTP/1.0 has no transfer codings: a proxy would read the chunks as the body, or as further
            // requests. RFC 9112, section 6.1.
            && (codings.isEmpty
                || head.version == .http1_1 && codings.map { $0.lowercased() } == ["chunked"])
            && head.method != .CONNECT
    }

    /// True if no request can follow. A request for an upgrade is answered in HTTP/1.1, which RFC 9110
    /// permits, and the input after it may be of another protocol.
    private static func endsConnection(_ head: HTTPRequestHead) -> Bool {
        let options = head.headers[canonicalForm: "Connection"].map { $0.lowercased() }
        // An HTTP/1.0 client reads until the connection ends unless it asks for keep-alive.
        return options.contains("close") || options.contains("upgrade")
            || head.headers.contains(name: "Upgrade")
            || (head.version != .http1_1 && !options.contains("keep-alive"))
    }
}

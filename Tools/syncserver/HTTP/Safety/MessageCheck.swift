// Refuses requests that the HTTP parser accepts and a proxy in front of this server might interpret
// differently, so that no request is smuggled inside another, and answers HTTP/1.0 in HTTP/1.0. Placed
// between the parser and the HTTP codec. Spec/operations/operating.md, OPS-5, OPS-20 and OPS-27.

import NIOCore
import NIOHTTP1

/// Refuses ambiguous request heads, ends the input of a connection after its last request, and sets the
/// version of replies.
final class MessageCheck: ChannelDuplexHandler, RemovableChannelHandler {
    typealias InboundIn = HTTPServerRequestPart
    typealias InboundOut = HTTPServerRequestPart
    typealias OutboundIn = HTTPServerResponsePart
    typealias OutboundOut = HTTPServerResponsePart

    private let gate: InputGate
    private var isRefused = false
    private var isLast = false
    /// The versions of the requests whose replies are not complete, in their order.
    private var versions = CircularBuffer<HTTPVersion>()

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
            versions.append(head.version)
            // HTTP/1.0 has no 100 Continue. RFC 9110, section 10.1.1.
            if head.version == .http1_0 { head.headers.remove(name: "Expect") }
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

    func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
        switch unwrapOutboundIn(data) {
        case .head(var head):
            // Without chunks, which HTTP/1.0 does not have, a body without a length ends with the
            // connection.
            if let version = versions.first { head.version = version }
            context.write(wrapOutboundOut(.head(head)), promise: promise)
        case .body: context.write(data, promise: promise)
        case .end:
            _ = versions.popFirst()
            context.write(data, promise: promise)
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
        // HTTP/1.0 keeps no connection: its keep-alive, which proxies pass on without knowing it, is
        // optional. RFC 9112, section 9.3 and appendix C.2.2.
        return options.contains("close") || options.contains("upgrade")
            || head.headers.contains(name: "Upgrade") || head.version != .http1_1
    }
}

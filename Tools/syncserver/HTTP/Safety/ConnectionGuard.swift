// Keeps one connection within its bounds: the time in which a request must have come and a reply
// must have been read, and the bytes of a body. Stands between the HTTP codec and Hummingbird's
// own handler, which bounds the time between two requests. Spec/operating.md, OPS-5, OPS-6.

import Hummingbird
import NIOCore
import NIOHTTP1
import NIOHTTPTypes
import NIOHTTPTypesHTTP1

/// Guards one connection.
final class ConnectionGuard: ChannelDuplexHandler, RemovableChannelHandler {
    typealias InboundIn = HTTPRequestPart
    typealias InboundOut = HTTPRequestPart
    typealias OutboundIn = HTTPResponsePart
    typealias OutboundOut = HTTPResponsePart

    /// Bytes of a body that are read, and thrown away after a refusal, before the connection is
    /// closed. Clients that are refused early mostly go on sending, and read the reply afterwards.
    static let bodyBytesMax = 4 * 1024 * 1024

    private let connections: Connections
    private let metrics: ServerMetrics
    private let timeLimit: TimeAmount
    /// Requests whose reply has not been handed over.
    private var underWay = 0
    /// Replies that were handed over, and not taken by the system yet.
    private var unsent = 0
    private var bodyBytes = 0
    /// The client waits for 100 before it sends the body.
    private var expectsContinue = false
    private var closesAfterReply = false
    private var requestEnd: Scheduled<Void>?
    private var replyEnd: Scheduled<Void>?

    init(_ connections: Connections, _ metrics: ServerMetrics, timeLimit: TimeAmount) {
        self.connections = connections
        self.metrics = metrics
        self.timeLimit = timeLimit
    }

    func handlerAdded(context: ChannelHandlerContext) {
        connections.open(context.channel)
        let pipeline = context.pipeline.syncOperations
        do {
            let codec = try pipeline.handler(type: HTTP1ToHTTPServerCodec.self)
            try pipeline.addHandler(MessageCheck(), position: .before(codec))
        } catch { context.close(promise: nil) }
    }

    func channelInactive(context: ChannelHandlerContext) {
        requestEnd?.cancel()
        replyEnd?.cancel()
        connections.close(context.channel)
        context.fireChannelInactive()
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        switch unwrapInboundIn(data) {
        case .head(let head):
            underWay += 1
            bodyBytes = 0
            expectsContinue = head.headerFields[.expect] != nil
            connections.set(context.channel, isIdle: false)
            startReading(context)
        case .body(let part):
            expectsContinue = false
            bodyBytes += part.readableBytes
            metrics.countBytes(in: part.readableBytes)
            if bodyBytes > Self.bodyBytesMax { return cut(context, .bodyTooLarge) }
        case .end:
            requestEnd?.cancel()
            requestEnd = nil
        }
        context.fireChannelRead(data)
    }

    func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
        switch unwrapOutboundIn(data) {
        case .head(var head) where head.status.kind != .informational:
            // What comes next is a body or not: only a new connection tells.
            if expectsContinue {
                closesAfterReply = true
                head.headerFields[.connection] = "close"
            }
            context.write(wrapOutboundOut(.head(head)), promise: promise)
        case .head:
            expectsContinue = false
            context.write(data, promise: promise)
        case .body(let part):
            metrics.countBytes(out: part.readableBytes)
            context.write(data, promise: promise)
        case .end:
            underWay -= 1
            if underWay == 0 { connections.set(context.channel, isIdle: true) }
            let sent = promise ?? context.eventLoop.makePromise(of: Void.self)
            startWriting(context, sent.futureResult)
            context.write(data, promise: sent)
        }
    }

    /// Answers what is no HTTP at once, unless a reply is under way: then Hummingbird closes. What
    /// comes behind a refusal gets no second answer.
    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        guard error is HTTPParserError || error is HTTP1TypeConversionError, underWay == 0 else {
            return context.fireErrorCaught(error)
        }
        let isOverflow = (error as? HTTPParserError) == .headerOverflow
        guard requestEnd == nil else { return cut(context, .notHTTP) }
        metrics.countCut(.notHTTP)
        refuse(context, isOverflow ? .requestHeaderFieldsTooLarge : .badRequest)
    }

    private func startReading(_ context: ChannelHandlerContext) {
        requestEnd?.cancel()
        requestEnd = schedule(context) { handler, context in
            // Not read any further because the client has not got the replies before this one:
            // the time for those counts.
            guard handler.underWay <= 1 else { return handler.startReading(context) }
            // Not 408: devices take a refusal as a fault of theirs, and a broken connection as one
            // of the network.
            handler.cut(context, .slowRequest)
        }
    }

    /// Every reply has its time, counted from when the one before it was taken.
    private func startWriting(_ context: ChannelHandlerContext, _ sent: EventLoopFuture<Void>) {
        unsent += 1
        if replyEnd == nil { waitForReader(context) }
        let box = NIOLoopBound((handler: self, context: context), eventLoop: context.eventLoop)
        sent.whenComplete { _ in
            let (handler, context) = box.value
            handler.unsent -= 1
            handler.replyEnd?.cancel()
            handler.replyEnd = nil
            if handler.closesAfterReply {
                context.close(promise: nil)
            } else if handler.unsent > 0 {
                handler.waitForReader(context)
            }
        }
    }

    private func waitForReader(_ context: ChannelHandlerContext) {
        replyEnd = schedule(context) { handler, context in handler.cut(context, .slowReader) }
    }

    private func schedule(
        _ context: ChannelHandlerContext,
        _ action: @escaping @Sendable (ConnectionGuard, ChannelHandlerContext) -> Void
    ) -> Scheduled<Void> {
        let box = NIOLoopBound((handler: self, context: context), eventLoop: context.eventLoop)
        return context.eventLoop.scheduleTask(in: timeLimit) {
            action(box.value.handler, box.value.context)
        }
    }

    private func cut(_ context: ChannelHandlerContext, _ reason: ServerMetrics.Cut) {
        metrics.countCut(reason)
        context.close(promise: nil)
    }

    private func refuse(_ context: ChannelHandlerContext, _ status: HTTPResponse.Status) {
        let head = HTTPResponse(
            status: status, headerFields: [.connection: "close", .contentLength: "0"])
        context.write(wrapOutboundOut(.head(head)), promise: nil)
        context.writeAndFlush(wrapOutboundOut(.end(nil))).assumeIsolated().whenComplete { _ in
            context.close(promise: nil)
        }
    }
}

// Keeps one connection within its bounds: the time in which a request must have come and a reply
// must have been read, the pace of a body, and when a body is read at all. Stands between the HTTP
// codec and Hummingbird's own handler, which bounds the time between two requests; holds the client
// up by InputGate. Spec/operations/operating.md, OPS-5, OPS-6, OPS-20, OPS-22.

import Hummingbird
import NIOCore
import NIOHTTP1
import NIOHTTPTypes
import NIOHTTPTypesHTTP1
import SyncServerAdmission

/// Guards one connection.
final class ConnectionGuard: ChannelDuplexHandler, RemovableChannelHandler {
    typealias InboundIn = HTTPRequestPart
    typealias InboundOut = HTTPRequestPart
    typealias OutboundIn = HTTPResponsePart
    typealias OutboundOut = HTTPResponsePart

    /// The bounds of how long and how slowly a client may send.
    struct Limits {
        /// For a request's head, for its body, for taking a reply.
        let time: TimeAmount
        /// The fewest bytes of a body a second; 0 sets no limit.
        let bodyRate: Int
        /// The time over which the pace of a body is averaged.
        var paceWindow: TimeAmount { min(.seconds(10), time) }
        var bytesPerWindow: Int { bodyRate * Int(paceWindow.nanoseconds / 1_000_000_000) }
    }

    /// The event by which a request handler asks for the body of its request.
    struct BodyWanted: Sendable {
        /// Asks for it.
        static func request(on channel: any Channel) {
            channel.triggerUserOutboundEvent(BodyWanted(), promise: nil)
        }
    }

    /// The body of the request that came last.
    private enum Body {
        /// It has come, or there is none.
        case complete
        /// The client is held up until a request handler wants it.
        case held
        /// It goes to the request handler.
        case wanted
        /// The request was refused: it is thrown away.
        case unwanted
    }

    /// What a part of a body costs beside its bytes, in bytes: a body of tiny chunks is work for
    /// nothing.
    private static let partCost = 64

    private let connections: Connections
    private let metrics: ServerMetrics
    private let limits: Limits
    private let gate = InputGate()
    /// Requests whose reply has not been handed over.
    private var underWay = 0
    /// Replies that were begun, and not taken by the system yet.
    private var unsent = 0
    private var body = Body.complete
    private var bodyBytes = 0
    /// Parts of a body that are passed on together.
    private var bodyPart: ByteBuffer?
    /// The client waits for 100 before it sends the body.
    private var expectsContinue = false
    private var isLastRequest = false
    private var closesAfterReply = false
    private var requestEnd: Scheduled<Void>?
    private var paceCheck: Scheduled<Void>?
    private var replyEnd: Scheduled<Void>?

    init(_ connections: Connections, _ metrics: ServerMetrics, _ limits: Limits) {
        self.connections = connections
        self.metrics = metrics
        self.limits = limits
    }

    func handlerAdded(context: ChannelHandlerContext) {
        connections.open(context.channel)
        let pipeline = context.pipeline.syncOperations
        do {
            let parser = try pipeline.handler(type: ByteToMessageHandler<HTTPRequestDecoder>.self)
            try pipeline.addHandler(gate, position: .before(parser))
            let codec = try pipeline.handler(type: HTTP1ToHTTPServerCodec.self)
            try pipeline.addHandler(MessageCheck(gate), position: .before(codec))
        } catch { context.close(promise: nil) }
    }

    func channelInactive(context: ChannelHandlerContext) {
        endRequestTimes()
        replyEnd?.cancel()
        connections.close(context.channel)
        context.fireChannelInactive()
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        switch unwrapInboundIn(data) {
        case .head(let head):
            underWay += 1
            bodyBytes = 0
            body = .held
            gate.beginRequest()
            gate.close()
            expectsContinue = head.headerFields[.expect] != nil
            isLastRequest = head.headerFields[.connection] == "close"
            connections.set(context.channel, phase)
            context.fireChannelRead(data)
        case .body(var part):
            expectsContinue = false
            bodyBytes += part.readableBytes
            gate.charge(Self.partCost)
            metrics.countBytes(in: part.readableBytes)
            guard body != .unwanted else { return }
            if bodyPart?.writeBuffer(&part) == nil { bodyPart = part }
        case .end:
            passBody(context)
            body = .complete
            endRequestTimes()
            connections.set(context.channel, phase)
            openGate()
            context.fireChannelRead(data)
        }
    }

    func channelReadComplete(context: ChannelHandlerContext) {
        passBody(context)
        context.fireChannelReadComplete()
    }

    func triggerUserOutboundEvent(
        context: ChannelHandlerContext, event: Any, promise: EventLoopPromise<Void>?
    ) {
        guard event is BodyWanted else {
            return context.triggerUserOutboundEvent(event, promise: promise)
        }
        // Handlers work on one request at a time. If more are under way, the one that came last is
        // not theirs, and the body of theirs has come.
        if underWay == 1, body == .held { receiveBody(.wanted, context) }
        promise?.succeed()
    }

    func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
        switch unwrapOutboundIn(data) {
        case .head(var head) where head.status.kind != .informational:
            startWriting(context)
            if underWay == 1 {
                // What comes next is a body or not: only a new connection tells.
                if expectsContinue { closesAfterReply = true }
                if body == .held, [.tooManyRequests, .serviceUnavailable].contains(head.status) {
                    leaveBody(context)
                } else if body != .complete {
                    receiveBody(.unwanted, context)
                }
                if isLastRequest || closesAfterReply { head.headerFields[.connection] = "close" }
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
            openGate()
            let sent = promise ?? context.eventLoop.makePromise(of: Void.self)
            endWriting(context, sent.futureResult)
            context.write(data, promise: sent)
        }
    }

    /// Answers what is no HTTP at once, unless a reply is under way: then Hummingbird closes. What
    /// comes behind a refusal gets no second answer.
    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        if error is InputGate.Overflow { return cut(context, .bodyTooLarge) }
        guard error is HTTPParserError || error is HTTP1TypeConversionError, underWay == 0 else {
            return context.fireErrorCaught(error)
        }
        gate.finish()
        let isOverflow = (error as? HTTPParserError) == .headerOverflow
        guard body == .complete else { return cut(context, .notHTTP) }
        metrics.countCut(.notHTTP)
        refuse(context, isOverflow ? .requestHeaderFieldsTooLarge : .badRequest)
    }

    /// Lets the body come, to the handler or to nothing. Its time begins only now: until now it was
    /// this server that did not read it.
    private func receiveBody(_ use: Body, _ context: ChannelHandlerContext) {
        body = use
        if use == .unwanted { bodyPart = nil }
        if requestEnd == nil {
            requestEnd = schedule(context, limits.time) { handler, context in
                // Not 408: devices take a refusal as a fault of theirs, and a broken connection as
                // one of the network.
                handler.cut(context, .slowRequest)
            }
            watchPace(context)
        }
        if use == .wanted { gate.open() } else { gate.openInTurn() }
    }

    /// Leaves the body with the client: a server that has too much to do does not read it. The client
    /// has some time to take the reply and to end the connection.
    private func leaveBody(_ context: ChannelHandlerContext) {
        body = .unwanted
        isLastRequest = true
        gate.finish()
        requestEnd = schedule(context, limits.paceWindow) { handler, context in
            handler.cut(context, .slowRequest)
        }
    }

    private func watchPace(_ context: ChannelHandlerContext) {
        let before = bodyBytes
        paceCheck = schedule(context, limits.paceWindow) { handler, context in
            if handler.bodyBytes - before < handler.limits.bytesPerWindow {
                handler.cut(context, .slowRequest)
            } else {
                handler.watchPace(context)
            }
        }
    }

    private func endRequestTimes() {
        requestEnd?.cancel()
        requestEnd = nil
        paceCheck?.cancel()
        paceCheck = nil
    }

    private func passBody(_ context: ChannelHandlerContext) {
        guard let part = bodyPart else { return }
        bodyPart = nil
        context.fireChannelRead(wrapInboundOut(.body(part)))
    }

    private func openGate() {
        if body == .complete, underWay == 0 { gate.openInTurn() }
    }

    /// What the connection does. After its last reply it is idle even if a refused body still comes:
    /// such a connection is the first to make room.
    private var phase: ConnectionTable<ObjectIdentifier>.Phase {
        if unsent > 0 { return .sending }
        guard underWay > 0 else { return .idle }
        return body == .complete ? .answering : .receiving
    }

    /// Every reply has its time, counted from when the one before it was taken.
    private func startWriting(_ context: ChannelHandlerContext) {
        unsent += 1
        connections.set(context.channel, phase)
        if replyEnd == nil { waitForReader(context) }
    }

    private func endWriting(_ context: ChannelHandlerContext, _ sent: EventLoopFuture<Void>) {
        let box = NIOLoopBound((handler: self, context: context), eventLoop: context.eventLoop)
        sent.whenComplete { _ in
            let (handler, context) = box.value
            handler.unsent -= 1
            handler.replyEnd?.cancel()
            handler.replyEnd = nil
            handler.connections.set(context.channel, handler.phase)
            if handler.closesAfterReply, handler.unsent == 0 {
                context.close(promise: nil)
            } else if handler.unsent > 0 {
                handler.waitForReader(context)
            }
        }
    }

    private func waitForReader(_ context: ChannelHandlerContext) {
        replyEnd = schedule(context, limits.time) { handler, context in
            handler.cut(context, .slowReader)
        }
    }

    private func schedule(
        _ context: ChannelHandlerContext, _ time: TimeAmount,
        _ action: @escaping @Sendable (ConnectionGuard, ChannelHandlerContext) -> Void
    ) -> Scheduled<Void> {
        let box = NIOLoopBound((handler: self, context: context), eventLoop: context.eventLoop)
        return context.eventLoop.scheduleTask(in: time) {
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

// Enforces the limits of one connection: the time to send a request and to read a reply, the rate of a
// body, and when a body is read at all. Placed between the HTTP codec and Hummingbird's own handler,
// which limits the time between two requests. InputGate holds input back for it.
// Spec/operations/operating.md, OPS-5, OPS-6, OPS-20, OPS-22.

import Hummingbird
import NIOCore
import NIOHTTP1
import NIOHTTPTypes
import NIOHTTPTypesHTTP1
import SyncServerAdmission
import SyncWire

/// Guards one connection.
final class ConnectionGuard: ChannelDuplexHandler, RemovableChannelHandler {
    typealias InboundIn = HTTPRequestPart
    typealias InboundOut = HTTPRequestPart
    typealias OutboundIn = HTTPResponsePart
    typealias OutboundOut = HTTPResponsePart

    /// The limits for a client.
    struct Limits {
        /// The longest time for sending a head, for sending a body, and for reading a reply.
        let time: TimeAmount
        /// The least bytes of a body a second; 0 sets no limit.
        let bodyRate: Int
        /// The time over which the rate of a body is averaged.
        var rateWindow: TimeAmount { min(.seconds(10), time) }
        var bytesPerWindow: Int { bodyRate * Int(rateWindow.nanoseconds / 1_000_000_000) }
    }

    /// The event by which a request handler asks for the body of its request.
    struct BodyWanted: Sendable {
        /// Triggers the event.
        static func request(on channel: any Channel) {
            channel.triggerUserOutboundEvent(BodyWanted(), promise: nil)
        }
    }

    /// The state of the body of the last request.
    private enum Body {
        /// Received completely, or the request has none.
        case complete
        /// Not read until a request handler wants it.
        case held
        /// Passed on to the request handler.
        case wanted
        /// Discarded, because the request was refused.
        case unwanted
    }

    /// The cost of a part of a body beside its bytes, in bytes. Limits the work for a body of tiny
    /// chunks.
    private static let partCost = 64

    private let connections: Connections
    private let metrics: ServerMetrics
    private let limits: Limits
    private let gate = InputGate()
    /// Requests whose reply is not written completely.
    private var requestsUnderWay = 0
    /// Replies that were begun and are not sent completely.
    private var unsentReplies = 0
    /// True while the reply is a stream of events, which ends when its client leaves. Its parts are timed one by
    /// one.
    private var isFollowing = false
    /// Parts of a stream that are not sent completely.
    private var unsentParts = 0
    private var body = Body.complete
    private var bodyBytes = 0
    /// Received parts of a body, passed on together.
    private var bodyPart: ByteBuffer?
    /// True if the client waits for 100 before it sends the body.
    private var expectsContinue = false
    private var isLastRequest = false
    private var closesAfterReply = false
    private var requestTimeout: Scheduled<Void>?
    private var bodyRateCheck: Scheduled<Void>?
    private var replyTimeout: Scheduled<Void>?

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
        cancelRequestTimeouts()
        replyTimeout?.cancel()
        connections.close(context.channel)
        context.fireChannelInactive()
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        switch unwrapInboundIn(data) {
        case .head(let head):
            requestsUnderWay += 1
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
            cancelRequestTimeouts()
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
        // Handlers process one request at a time. If more are under way, the last one received is not
        // the handler's, and the body of the handler's request is complete.
        if requestsUnderWay == 1, body == .held { receiveBody(.wanted, context) }
        promise?.succeed()
    }

    func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
        switch unwrapOutboundIn(data) {
        case .head(var head) where head.status.kind != .informational:
            isFollowing = head.headerFields[.contentType] == WireType.stream
            startWriting(context)
            if requestsUnderWay == 1 {
                // The client may or may not send the body now, so the connection cannot be reused.
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
            guard isFollowing else { return context.write(data, promise: promise) }
            let sent = promise ?? context.eventLoop.makePromise(of: Void.self)
            timePart(context, sent.futureResult)
            context.write(data, promise: sent)
        case .end:
            isFollowing = false
            requestsUnderWay -= 1
            openGate()
            let sent = promise ?? context.eventLoop.makePromise(of: Void.self)
            endWriting(context, sent.futureResult)
            context.write(data, promise: sent)
        }
    }

    /// Answers input that is not HTTP at once, unless a reply is under way: then Hummingbird closes.
    /// After a refusal, the connection is closed without a second answer.
    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        if error is InputGate.Overflow { return closeEarly(context, .bodyTooLarge) }
        guard error is HTTPParserError || error is HTTP1TypeConversionError, requestsUnderWay == 0
        else {
            return context.fireErrorCaught(error)
        }
        gate.finish()
        let isOverflow = (error as? HTTPParserError) == .headerOverflow
        guard body == .complete else { return closeEarly(context, .notHTTP) }
        metrics.countCut(.notHTTP)
        refuse(context, isOverflow ? .requestHeaderFieldsTooLarge : .badRequest)
    }

    /// Starts to read the body, to pass it on or to discard it. Its time limit begins now: until now
    /// the server has not read it.
    private func receiveBody(_ use: Body, _ context: ChannelHandlerContext) {
        body = use
        if use == .unwanted { bodyPart = nil }
        if requestTimeout == nil {
            requestTimeout = schedule(context, limits.time) { handler, context in
                // Not 408: a device treats a refusal as its own fault, and a closed connection as a
                // failure of the network.
                handler.closeEarly(context, .slowRequest)
            }
            watchBodyRate(context)
        }
        if use == .wanted { gate.open() } else { gate.openInTurn() }
    }

    /// Leaves the body unread, since the server is overloaded. The client has some time to read the
    /// reply and to close the connection.
    private func leaveBody(_ context: ChannelHandlerContext) {
        body = .unwanted
        isLastRequest = true
        gate.finish()
        requestTimeout = schedule(context, limits.rateWindow) { handler, context in
            handler.closeEarly(context, .slowRequest)
        }
    }

    private func watchBodyRate(_ context: ChannelHandlerContext) {
        let before = bodyBytes
        bodyRateCheck = schedule(context, limits.rateWindow) { handler, context in
            if handler.bodyBytes - before < handler.limits.bytesPerWindow {
                handler.closeEarly(context, .slowRequest)
            } else {
                handler.watchBodyRate(context)
            }
        }
    }

    private func cancelRequestTimeouts() {
        requestTimeout?.cancel()
        requestTimeout = nil
        bodyRateCheck?.cancel()
        bodyRateCheck = nil
    }

    private func passBody(_ context: ChannelHandlerContext) {
        guard let part = bodyPart else { return }
        bodyPart = nil
        context.fireChannelRead(wrapInboundOut(.body(part)))
    }

    private func openGate() {
        if body == .complete, requestsUnderWay == 0 { gate.openInTurn() }
    }

    /// The phase of the connection. After its last reply it is idle even if a refused body is still
    /// being sent: such a connection is closed first when there are too many.
    private var phase: ConnectionTable<ObjectIdentifier>.Phase {
        if isFollowing { return .following }
        if unsentReplies > 0 { return .sending }
        guard requestsUnderWay > 0 else { return .idle }
        return body == .complete ? .answering : .receiving
    }

    /// Starts the time limit of a reply, which counts from the end of the reply before.
    private func startWriting(_ context: ChannelHandlerContext) {
        unsentReplies += 1
        connections.set(context.channel, phase)
        if replyTimeout == nil, !isFollowing { waitForReader(context) }
    }

    private func endWriting(_ context: ChannelHandlerContext, _ sent: EventLoopFuture<Void>) {
        let box = NIOLoopBound((handler: self, context: context), eventLoop: context.eventLoop)
        sent.whenComplete { _ in
            let (handler, context) = box.value
            handler.unsentReplies -= 1
            handler.replyTimeout?.cancel()
            handler.replyTimeout = nil
            handler.connections.set(context.channel, handler.phase)
            if handler.closesAfterReply, handler.unsentReplies == 0 {
                context.close(promise: nil)
            } else if handler.unsentReplies > 0 {
                handler.waitForReader(context)
            }
        }
    }

    /// Starts the time limit of a part of a stream, which counts from the end of the part before.
    private func timePart(_ context: ChannelHandlerContext, _ sent: EventLoopFuture<Void>) {
        unsentParts += 1
        if replyTimeout == nil { waitForReader(context) }
        let box = NIOLoopBound((handler: self, context: context), eventLoop: context.eventLoop)
        sent.whenComplete { _ in
            let (handler, context) = box.value
            handler.unsentParts -= 1
            // The end of the stream has its own limit.
            guard handler.isFollowing else { return }
            handler.replyTimeout?.cancel()
            handler.replyTimeout = nil
            if handler.unsentParts > 0 { handler.waitForReader(context) }
        }
    }

    private func waitForReader(_ context: ChannelHandlerContext) {
        replyTimeout = schedule(context, limits.time) { handler, context in
            handler.closeEarly(context, .slowReader)
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

    private func closeEarly(_ context: ChannelHandlerContext, _ reason: ServerMetrics.Cut) {
        // A reply that is written after the end of its connection starts time limits again.
        guard context.channel.isActive else { return }
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

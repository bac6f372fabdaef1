// POST and GET /v1/events: parses a request, calls the storage, encodes the reply.
// Spec/protocol/sync-protocol.md, SYNC-5 to SYNC-36.

import EventSourcing
import Foundation
import Hummingbird
import NIOCore
import NIOHTTPTypes
import SyncServerAdmission
import SyncServerStorage
import SyncWire

/// The routes under `/v1/events`.
struct EventRoutes: Sendable {
    /// The storage of the events.
    let storage: any EventStorage
    /// The rules by which posted events are read.
    let catalogue: EventCatalogue
    /// The server's counters.
    let metrics: ServerMetrics
    /// The capacity that all requests share.
    let capacity: SharedCapacity

    private static let link = HTTPFields.Element.Name(valid: LinkHeader.name)
    private static let offered = HTTPFields.Element.Name(valid: WireHeader.offered)
    private static let remaining = HTTPFields.Element.Name(valid: WireHeader.remaining)
    private static let buffering = HTTPFields.Element.Name(valid: "X-Accel-Buffering")

    /// Adds the routes.
    func add(to group: RouterGroup<ServerContext>) {
        group.post(RouterPath(eventsPath), use: append)
        group.get(RouterPath(eventsPath), use: page)
    }

    @Sendable private func append(_ request: Request, _ context: ServerContext) async throws
        -> Response
    {
        let place = try capacity.place(context.account)
        try checkType(request)
        let bodyMemory = try await capacity.bodyMemory(bodyBytes(request), context.account)
        defer { bodyMemory.release() }
        try context.checkPermission()
        let body = try await collectBody(request, context)
        bodyMemory.shrink(to: body.count)
        let replyMemory = try await capacity.verdictMemory(context.account)
        let turn = try await capacity.turnToWrite(context.account)
        defer { turn.release() }
        let batch: [ReceivedEvent]
        do throws(BatchError) {
            batch = try BatchReader.read(
                body.span.bytes, catalogue: catalogue, now: Timestamp(Date()),
                isOffer: request.headers[Self.offered] == "1")
        } catch {
            throw RequestError(error)
        }
        let verdicts = try await storage.append(
            batch, account: context.account, check: context.checkPermission)
        count(verdicts, context)
        let reply = EventVerdict.reply(verdicts)
        replyMemory.shrink(to: reply.count)
        return Reply.large(
            reply, holding: [place, replyMemory], on: context.channel.eventLoop,
            check: context.checkPermission)
    }

    @Sendable private func page(_ request: Request, _ context: ServerContext) async throws
        -> Response
    {
        guard !EventStream.isRequested(by: request) else { return try stream(request, context) }
        let place = try capacity.place(context.account)
        // Not held while the client reads: batches need places, too.
        defer { place.release() }
        let query = try PageQuery(request, limitMax: WireLimits.events, storage.restores)
        let memory = try await capacity.pageMemory(context.account)
        let turn = try await capacity.turnToRead(context.account)
        defer { turn.release() }
        let page = try await storage.page(
            account: context.account, source: query.source, after: query.cursor,
            limit: query.limit)
        metrics.countEvents(out: page.lines.count)
        context.record.counts = [("events", page.lines.count)]
        var reply = Array("[".utf8)
        for (index, line) in page.lines.enumerated() {
            if index > 0 { reply.append(UInt8(ascii: ",")) }
            reply.append(contentsOf: line)
        }
        reply.append(UInt8(ascii: "]"))
        memory.shrink(to: reply.count)
        var headers: HTTPFields = [
            Self.link: LinkHeader.value(next: "\(eventsPath)?\(query.next(page.next))")
        ]
        if let remaining = page.remaining { headers[Self.remaining] = "\(remaining)" }
        return Reply.large(
            reply, contentType: WireType.batch, headers: headers, holding: [memory],
            on: context.channel.eventLoop, check: context.checkPermission)
    }

    private func stream(_ request: Request, _ context: ServerContext) throws -> Response {
        let place = try capacity.stream(context.account)
        let start = try PageQuery.startOfStream(request, storage.restores)
        guard case .serial(let serial) = start else {
            preconditionFailure("a stream has the server's order")
        }
        let stream = EventStream(
            storage: storage, metrics: metrics, capacity: capacity, context: context, place: place,
            wakeups: storage.signals.addStream(of: context.account, after: serial))
        // Also for a client that leaves before the body is begun.
        context.channel.closeFuture.whenComplete { [storage, wakeups = stream.wakeups] _ in
            storage.signals.removeStream(wakeups)
        }
        var reply = Reply.json(.ok, [], contentType: WireType.stream)
        // nginx would collect the stream before it passes it on.
        reply.headers[Self.buffering] = "no"
        reply.body = ResponseBody { try await stream.write(after: start, to: &$0) }
        return reply
    }

    private func checkType(_ request: Request) throws {
        let parts = (request.headers[.contentType] ?? "").lowercased().split(separator: ";")
            .map { $0.trimmingCharacters(in: .whitespaces) }
        guard parts.first == WireType.batch,
            parts.dropFirst().allSatisfy({ ["charset=utf-8", "charset=\"utf-8\""].contains($0) })
        else {
            throw RequestError(
                .unsupportedMediaType, "unsupported_media_type",
                "the content type must be \(WireType.batch)")
        }
        guard ["identity", nil].contains(request.headers[.contentEncoding]?.lowercased()) else {
            throw RequestError(
                .unsupportedMediaType, "unsupported_media_type",
                "a content encoding is not supported")
        }
    }

    private func count(_ verdicts: [EventVerdict], _ context: ServerContext) {
        var statuses: [String: Int] = [:]
        for verdict in verdicts { statuses[verdict.status.rawValue, default: 0] += 1 }
        metrics.countVerdicts(statuses)
        context.record.counts = [("events", verdicts.count)] + statuses.map { ($0, $1) }
    }

    private static let tooLarge = RequestError(
        .contentTooLarge, "batch_too_large",
        "the body has more than \(WireLimits.bodyBytes) bytes")

    /// The size of the body in bytes; without a Content-Length, the most that a body may have.
    private func bodyBytes(_ request: Request) throws(RequestError) -> Int {
        guard let text = request.headers[.contentLength] else { return WireLimits.bodyBytes }
        // The parser accepts every number of 64 bits.
        guard let length = Int(text), length <= WireLimits.bodyBytes else { throw Self.tooLarge }
        return max(1, length)
    }

    private func collectBody(
        _ request: Request, _ context: ServerContext
    ) async throws -> [UInt8] {
        ConnectionGuard.BodyWanted.request(on: context.channel)
        // The client waits for this reply before it sends the body.
        if request.headers[.expect] != nil {
            try await context.channel.writeAndFlush(
                HTTPResponsePart.head(HTTPResponse(status: .continue)))
        }
        var body: [UInt8] = []
        for try await part in request.body {
            try context.checkPermission()
            guard body.count + part.readableBytes <= WireLimits.bodyBytes else {
                throw Self.tooLarge
            }
            body.append(contentsOf: part.readableBytesView)
        }
        return body
    }
}

extension RequestError {
    fileprivate init(_ error: BatchError) {
        switch error {
        case .notAnArray(let detail):
            self.init(.badRequest, "not_a_batch", "not a batch: \(detail)")
        case .unusableID(let index):
            self.init(
                .badRequest, "unusable_id", "element \(index) has no id that is a UUID")
        case .tooManyEvents:
            self.init(
                .contentTooLarge, "batch_too_large",
                "the batch has more than \(WireLimits.events) events")
        }
    }
}

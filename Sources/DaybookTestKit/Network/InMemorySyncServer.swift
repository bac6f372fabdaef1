// A sync server in memory, for tests of an app: the stores of the account read the events that one of them
// ships. Spec/protocol/sync-protocol.md.

import Daybook
import EventSourcing
import Foundation
import Synchronization

/// A sync server in memory that is also the transport. Stores that sync over the same server are devices of
/// one account.
///
/// ```swift
/// let server = InMemorySyncServer()
/// try await phone.sync(over: server)
/// try await tablet.sync(over: server)   // has the phone's events
/// ```
///
/// It behaves as a server with the events of one account: each event counts once (SYNC-24, SYNC-25), a lane
/// stops after an event that was not accepted (SYNC-29), and readers get events in the order in which they
/// were accepted (SYNC-35). A `SyncService` follows it, so devices get each other's events at once (PUSH-4). An
/// event of any type that names a base event (`EventDraft.baseID`) is in conflict
/// unless the base is the newest event of its lane by `Event.lwwTimestamp`; one that is based on nothing
/// (`EventDraft.noBase`), unless its lane has no event; neither if it is offered (`offer`). The server checks no tokens and no rules of event types.
/// Each has a name of its own, so a store that moves from one to another offers everything to the new one (RPL-15).
public final class InMemorySyncServer: FollowingTransport {
    /// The error of a request that was not answered.
    public struct Unreachable: LocalizedError, Hashable, Sendable, CustomStringConvertible {
        /// The same as `description`.
        public var errorDescription: String? { description }

        /// The property to set before the next request.
        public var recoverySuggestion: String? { "Set isReachable to true." }

        /// The message.
        public var description: String { "the in-memory server is not reachable" }
    }

    private struct State {
        var events: [EventDraft] = []
        /// The events as they were sent.
        var lines: [[UInt8]] = []
        var indexes: [UUID: Int] = [:]
        /// For each lane, the index and the LWW timestamp of its newest event.
        var heads: [String: (index: Int, lwwTimestamp: LWWTimestamp)] = [:]
        /// The LWW timestamps of the events.
        var lwwTimestamps: [LWWTimestamp] = []
        var requests: [TransportRequest] = []
        var isReachable = true
        /// The times of the restored states, in milliseconds since 1970, in the order of the restores.
        var restoreTimes: [Int64] = []
        var restores: Int { restoreTimes.count }
        /// Wake the open streams.
        var streams: [UUID: AsyncStream<Void>.Continuation] = [:]

        /// Makes an event the head of its lane, if it is newer.
        mutating func updateHead(of lane: String?, _ index: Int, _ lwwTimestamp: LWWTimestamp) {
            guard let lane, heads[lane].map({ $0.lwwTimestamp < lwwTimestamp }) ?? true else {
                return
            }
            heads[lane] = (index, lwwTimestamp)
        }

        /// The name with the number of the last restore.
        func server(_ name: String) -> String { restores == 0 ? name : "\(name).\(restores)" }

        /// The cursor before the event with an index. After a restore it names the restore.
        func cursor(at index: Int) -> String {
            restores == 0 ? String(index) : "\(index).\(restores)"
        }

        /// The last restore, with the earliest restored state since a cursor was given out; nil if there is none.
        func restore(since cursor: String?) -> ServerRestore? {
            let parts = (cursor ?? "").split(separator: ".").map { Int($0) }
            guard let index = parts.first ?? nil, index >= 0 else { return nil }
            let known = (parts.count == 2 ? parts[1] : 0) ?? 0
            return restoreTimes.dropFirst(max(0, known)).min().map {
                ServerRestore(time: $0, generation: String(restores))
            }
        }

        /// The index after a cursor; nil for one that this server has not given out since its last restore.
        func index(of cursor: String?) -> Int? {
            guard let cursor else { return 0 }
            let parts = cursor.split(separator: ".").map { Int($0) }
            guard let index = parts.first ?? nil, index >= 0,
                (parts.count == 2 ? parts[1] : 0) == restores
            else { return nil }
            return index
        }
    }

    private let state = Mutex(State())
    private let name: String
    private let verdict: @Sendable (EventDraft) -> Verdict?

    /// Creates a server without events.
    ///
    /// - Parameters:
    ///   - name: the name of its database; servers with one name count as one. Random if it is missing.
    ///   - verdict: returns the answer to an event that the server does not have. Nil, `applied` and
    ///   `duplicate` accept the event.
    public init(
        name: String = UUID().uuidString,
        verdict: @escaping @Sendable (EventDraft) -> Verdict? = { _ in nil }
    ) {
        self.name = name
        self.verdict = verdict
    }

    /// Whether requests are answered. Without an answer, `send` throws `Unreachable`, and so do open streams.
    public var isReachable: Bool {
        get { state.withLock { $0.isReachable } }
        set {
            state.withLock { $0.isReachable = newValue }
            wakeStreams()
        }
    }

    /// The accepted events, in the order in which readers get them.
    public var events: [EventDraft] { state.withLock { $0.events } }

    /// All requests so far, unanswered ones included.
    public var requests: [TransportRequest] { state.withLock { $0.requests } }

    /// Accepts events that another server, or this one before a restore, has accepted, whatever they are based on.
    ///
    /// - Throws: as `send(_:token:)`.
    public func offer(
        _ batch: [UInt8], token: String?, account: String?
    ) async throws -> TransportReply {
        try answer(.append(batch: batch), isOffer: true)
    }

    /// Accepts a batch of events, or returns a page of at most 500.
    ///
    /// - Returns: status 200; 400 for a batch that is not a JSON array of events, or a cursor that is not a
    ///   number.
    /// - Throws: `Unreachable` while `isReachable` is false.
    public func send(_ request: TransportRequest, token: String?) async throws -> TransportReply {
        try answer(request, isOffer: false)
    }

    private func answer(_ request: TransportRequest, isOffer: Bool) throws -> TransportReply {
        let isReachable = state.withLock { state in
            state.requests.append(request)
            return state.isReachable
        }
        guard isReachable else { throw Unreachable() }
        var reply =
            switch request {
            case .append(let batch): accept(batch, isOffer: isOffer)
            case .read(let cursor): page(after: cursor)
            }
        reply.server = state.withLock { $0.server(name) }
        return reply
    }

    private func accept(_ batch: [UInt8], isOffer: Bool) -> TransportReply {
        guard let lines = Self.elements(batch) else { return TransportReply(status: 400) }
        var stoppedLanes: Set<String> = []
        var verdicts: [Verdict] = []
        for line in lines {
            guard let event = try? ForeignEvent(line.span.bytes) else {
                return TransportReply(status: 400)
            }
            let draft = event.draft
            var answer = Verdict(id: draft.id, status: .unprocessed)
            if draft.lane.map(stoppedLanes.contains) != true {
                answer = accept(event, line, isOffer: isOffer)
            }
            if answer.status.holdsLane, let lane = draft.lane { stoppedLanes.insert(lane) }
            verdicts.append(answer)
        }
        wakeStreams()
        return TransportReply(status: 200, body: Verdict.reply(verdicts))
    }

    private func accept(_ event: ForeignEvent, _ line: [UInt8], isOffer: Bool) -> Verdict {
        let draft = event.draft
        if let existing = state.withLock({ Self.verdictIfStored(draft, in: $0) }) {
            return existing
        }
        var answer = verdict(draft) ?? Verdict(id: draft.id, status: .applied)
        answer.id = draft.id
        guard answer.status == .applied || answer.status == .duplicate else { return answer }
        return state.withLock { state in
            // Another request may have delivered the event while `verdict` ran.
            if let existing = Self.verdictIfStored(draft, in: state) { return existing }
            let head = draft.lane.flatMap { state.heads[$0] }
            let newest = head.map { state.events[$0.index].id } ?? EventDraft.noBase
            if !isOffer, let base = draft.baseID, base != newest {
                let current = head.flatMap { JSONValue.parsed(state.lines[$0.index]) }
                return Verdict(
                    id: draft.id, status: .conflict,
                    detail: "the base is not the newest event of the lane", current: current)
            }
            let lwwTimestamp = LWWTimestamp(
                time: draft.time ?? Timestamp(milliseconds: 0), source: event.source.integer,
                sequence: event.sequence)
            state.updateHead(of: draft.lane, state.events.count, lwwTimestamp)
            state.lwwTimestamps.append(lwwTimestamp)
            state.indexes[draft.id] = state.events.count
            state.events.append(draft)
            state.lines.append(line)
            return answer
        }
    }

    private func wakeStreams() {
        for stream in state.withLock({ Array($0.streams.values) }) { stream.yield() }
    }

    /// Passes on the accepted events after a cursor, then each new one.
    ///
    /// - Throws: `Unreachable` while `isReachable` is false; `CancellationError`.
    public func follow(
        after cursor: String?, token: String?, account: String?,
        receive: @escaping @Sendable (StreamSignal) -> Bool
    ) async throws -> StreamEnd {
        let restores = state.withLock { $0.restores }
        guard var index = state.withLock({ $0.index(of: cursor) }) else {
            return .refused(status: 400, retryAfterSeconds: nil)
        }
        let (wakes, wake) = AsyncStream.makeStream(
            of: Void.self, bufferingPolicy: .bufferingNewest(1))
        let id = UUID()
        state.withLock { $0.streams[id] = wake }
        defer { state.withLock { $0.streams[id] = nil } }
        wake.yield()
        var isOpen = false
        for await _ in wakes {
            let lines = try state.withLock { state -> [(line: [UInt8], next: String)]? in
                guard state.isReachable else { throw Unreachable() }
                guard state.restores == restores else { return nil }
                return state.lines.indices.dropFirst(index).map {
                    (state.lines[$0], state.cursor(at: $0 + 1))
                }
            }
            guard let lines else { return .ended }
            if !isOpen, !receive(.opened) { return .ended }
            isOpen = true
            for (line, next) in lines {
                index += 1
                guard receive(.event(line, next: next)) else { return .ended }
            }
        }
        throw CancellationError()
    }

    /// The verdict on an event whose id is stored; nil for any other.
    private static func verdictIfStored(_ draft: EventDraft, in state: State) -> Verdict? {
        state.indexes[draft.id].map { index in
            state.events[index] == draft
                ? Verdict(id: draft.id, status: .duplicate)
                : Verdict(id: draft.id, status: .rejected, code: Verdict.Code.idReused.rawValue)
        }
    }

    /// Loses events, as a server does that is restored from a backup.
    ///
    /// - Parameters:
    ///   - count: the number of events that are kept, the first ones.
    ///   - time: the time of the restored state.
    public func restore(keeping count: Int, to time: Date) {
        state.withLock { state in
            state.lines = Array(state.lines.prefix(count))
            state.events = Array(state.events.prefix(count))
            state.indexes = state.indexes.filter { $0.value < count }
            state.lwwTimestamps = Array(state.lwwTimestamps.prefix(count))
            state.heads = [:]
            for (index, event) in state.events.enumerated() {
                state.updateHead(of: event.lane, index, state.lwwTimestamps[index])
            }
            state.restoreTimes.append(Timestamp(time).milliseconds)
        }
        wakeStreams()
    }

    private func page(after cursor: String?) -> TransportReply {
        state.withLock { state in
            guard let start = state.index(of: cursor) else {
                return TransportReply(status: 400, restore: state.restore(since: cursor))
            }
            let page = state.lines.dropFirst(start).prefix(WireLimits.events)
            return TransportReply(
                status: 200, body: JSONObjectWriter.array(Array(page)),
                next: state.cursor(at: start + page.count),
                remaining: max(0, state.lines.count - start - page.count))
        }
    }

    /// The elements of a JSON array; nil for anything else.
    private static func elements(_ batch: [UInt8]) -> [[UInt8]]? {
        let text = batch.span.bytes
        var elements: [[UInt8]] = []
        do throws(JSONError) {
            var scanner = JSONScanner()
            guard scanner.peek(text) == UInt8(ascii: "[") else { return nil }
            try scanner.elements(text) { (scanner) throws(JSONError) in
                elements.append(Array(batch[try scanner.value(text, depth: 1)]))
            }
            try scanner.expectEnd(text)
        } catch { return nil }
        return elements
    }
}

extension JSONValue {
    /// Parses a JSON text; nil if it is not exactly one value.
    fileprivate static func parsed(_ text: [UInt8]) -> JSONValue? {
        try? JSONValue(text.span.bytes)
    }
}

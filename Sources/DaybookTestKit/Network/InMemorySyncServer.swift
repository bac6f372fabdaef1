// A sync server in memory, for tests of an app: what one store ships, the others of the account read.
// Spec/protocol/sync-protocol.md.

import Daybook
import EventSourcing
import Foundation
import Synchronization

/// A sync server in memory. It is the transport, too: stores that sync over one server are devices of one
/// account.
///
/// ```swift
/// let server = InMemorySyncServer()
/// try await phone.sync(over: server)
/// try await tablet.sync(over: server)   // has what the phone recorded
/// ```
///
/// It answers as a server does that keeps the events of one account: each event counts once (SYNC-24,
/// SYNC-25), a lane stops behind an event that was not accepted (SYNC-29), and readers get events in the
/// order in which they were accepted (SYNC-35). An event of any type that names another event as its base
/// (`EventDraft.baseID`) is in conflict unless that is the newest event of its lane by
/// `Event.stamp`. The server checks no token and no rule of a type.
public final class InMemorySyncServer: Transport {
    /// Why a request was not answered.
    public struct Unreachable: LocalizedError, Hashable, Sendable, CustomStringConvertible {
        /// The same as `description`.
        public var errorDescription: String? { description }

        /// What to do next.
        public var recoverySuggestion: String? { "Set isReachable to true." }

        /// What happened.
        public var description: String { "the server in memory is not reachable" }
    }

    private struct State {
        var events: [EventDraft] = []
        /// The events as they were sent.
        var lines: [[UInt8]] = []
        var indexes: [UUID: Int] = [:]
        /// For each lane, the index and the stamp of its newest event.
        var heads: [String: (index: Int, stamp: Stamp)] = [:]
        var requests: [TransportRequest] = []
        var isReachable = true
    }

    private let state = Mutex(State())
    private let verdict: @Sendable (EventDraft) -> Verdict?

    /// Creates a server without events.
    ///
    /// - Parameter verdict: the answer to an event that the server does not have; nil accepts it. A
    ///   verdict whose status is `applied` or `duplicate` accepts it, too.
    public init(verdict: @escaping @Sendable (EventDraft) -> Verdict? = { _ in nil }) {
        self.verdict = verdict
    }

    /// Whether requests are answered. Without an answer, `send` throws `Unreachable`.
    public var isReachable: Bool {
        get { state.withLock { $0.isReachable } }
        set { state.withLock { $0.isReachable = newValue } }
    }

    /// The accepted events, in the order in which readers get them.
    public var events: [EventDraft] { state.withLock { $0.events } }

    /// All requests so far, unanswered ones included.
    public var requests: [TransportRequest] { state.withLock { $0.requests } }

    /// Accepts a batch of events, or returns a page of at most 500.
    ///
    /// - Returns: status 200, or 400 for a batch that is no JSON array of events and for a cursor that is
    ///   no number.
    /// - Throws: `Unreachable` while `isReachable` is false.
    public func send(_ request: TransportRequest, token: String?) async throws -> TransportReply {
        let isReachable = state.withLock { state in
            state.requests.append(request)
            return state.isReachable
        }
        guard isReachable else { throw Unreachable() }
        return switch request {
        case .append(let batch): accept(batch)
        case .read(let cursor): page(after: cursor)
        }
    }

    private func accept(_ batch: [UInt8]) -> TransportReply {
        guard let lines = Self.elements(batch) else { return TransportReply(status: 400) }
        var stopped: Set<String> = []
        var verdicts: [[UInt8]] = []
        for line in lines {
            guard let event = try? ForeignEvent(line.span.bytes) else {
                return TransportReply(status: 400)
            }
            let draft = event.draft
            var answer = Verdict(id: draft.id, status: .unprocessed)
            if draft.lane.map(stopped.contains) != true { answer = accept(event, line) }
            if answer.status != .applied, answer.status != .duplicate, let lane = draft.lane {
                stopped.insert(lane)
            }
            verdicts.append(Self.json(answer))
        }
        var body = JSONObjectWriter()
        body.add("verdicts", raw: JSONObjectWriter.array(verdicts))
        return TransportReply(status: 200, body: body.finished())
    }

    private func accept(_ event: ForeignEvent, _ line: [UInt8]) -> Verdict {
        let draft = event.draft
        if let known = state.withLock({ Self.known(draft, in: $0) }) { return known }
        var answer = verdict(draft) ?? Verdict(id: draft.id, status: .applied)
        answer.id = draft.id
        guard answer.status == .applied || answer.status == .duplicate else { return answer }
        return state.withLock { state in
            // Another request may have brought it meanwhile.
            if let known = Self.known(draft, in: state) { return known }
            let head = draft.lane.flatMap { state.heads[$0] }
            if let base = draft.baseID, base != head.map({ state.events[$0.index].id }) {
                let current = head.flatMap { JSONValue.parsed(state.lines[$0.index]) }
                return Verdict(id: draft.id, status: .conflict, current: current)
            }
            let stamp = Stamp(
                time: draft.time ?? Timestamp(milliseconds: 0), source: event.source.integer,
                sequence: event.sequence)
            if let lane = draft.lane, head.map({ $0.stamp < stamp }) ?? true {
                state.heads[lane] = (state.events.count, stamp)
            }
            state.indexes[draft.id] = state.events.count
            state.events.append(draft)
            state.lines.append(line)
            return answer
        }
    }

    /// The answer to an event whose id the server has; nil for any other.
    private static func known(_ draft: EventDraft, in state: State) -> Verdict? {
        state.indexes[draft.id].map { index in
            state.events[index] == draft
                ? Verdict(id: draft.id, status: .duplicate)
                : Verdict(id: draft.id, status: .rejected, code: "id_reused")
        }
    }

    private func page(after cursor: String?) -> TransportReply {
        state.withLock { state in
            guard let start = cursor.map(Int.init) ?? 0, start >= 0 else {
                return TransportReply(status: 400)
            }
            let page = state.lines.dropFirst(start).prefix(500)
            return TransportReply(
                status: 200, body: JSONObjectWriter.array(Array(page)),
                next: String(start + page.count))
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

    private static func json(_ verdict: Verdict) -> [UInt8] {
        var object = JSONObjectWriter()
        object.add("id", verdict.id.text)
        object.add("status", verdict.status.rawValue)
        if let code = verdict.code { object.add("code", code) }
        if let detail = verdict.detail { object.add("detail", detail) }
        if let current = verdict.current { object.add("current", raw: current.json) }
        if let seconds = verdict.retryAfterSeconds { object.add("retryAfterSeconds", seconds) }
        return object.finished()
    }
}

extension JSONValue {
    /// The value of a text; nil for a text that is not one value.
    fileprivate static func parsed(_ text: [UInt8]) -> JSONValue? {
        try? JSONValue(text.span.bytes)
    }
}

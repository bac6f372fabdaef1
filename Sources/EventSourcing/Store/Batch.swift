// From drafts that were accepted to the lines of a commit: one after the other they get their places,
// then all cores encode them and read back what they wrote. Spec/overview.md.

import Foundation
import LogFormat

/// Events that are about to be appended together.
struct Batch {
    var lines = CommitLines()
    var events: [Event] = []
    var results: [Appended] = []
}

/// A draft as it can be recorded. An object, since it is handed on often.
final class CheckedDraft: Sendable {
    /// Lane and time may be open.
    let draft: EventDraft
    let lane: String
    var id: UUID { draft.id }
    let type: CataloguedType
    /// The data, if they were read.
    let decoded: AnyDecoded?

    /// Checks a draft by the rule of its type.
    ///
    /// - Throws: as `EventCatalogue.normalise(_:)`.
    init(_ draft: EventDraft, by catalogue: borrowing EventCatalogue) throws(EventError) {
        var draft = draft
        draft.bringIntoLineForm()
        type = catalogue.known[draft.type]
        decoded = try catalogue.normalised(&draft, as: type)
        lane = catalogue.lane(of: draft)
        self.draft = draft
    }

    /// An event that was recorded elsewhere: no rule has a say.
    init(_ event: ForeignEvent, by catalogue: borrowing EventCatalogue) {
        decoded = nil
        type = catalogue.known[event.draft.type]
        lane = catalogue.lane(of: event.draft)
        draft = event.draft
    }
}

/// What an append comes to, before it has a place.
enum PreparedEvent {
    case known(Appended)
    /// An event of this log, with the LWW timestamp of the value that it replaces.
    case new(CheckedDraft, replacing: Stamp?)
    /// An event that another log has made, or an earlier life of this one.
    case received(ForeignEvent)
}

/// Makes a batch.
struct BatchEncoder {
    private let catalogue: EventCatalogue
    private let source: UInt128
    private var next: Position
    private var floor: TimeFloor
    /// The places among `placed` of these ids: each is recorded once.
    private var earlier = IDTable()
    private var placed: [PlacedDraft] = []
    private var results: [Appended] = []
    /// The time of the last event that replaces a value: those behind it count more.
    private var raised = Timestamp(milliseconds: .min)

    private struct PlacedDraft: Sendable {
        let draft: CheckedDraft
        let prefix: LinePrefix
        let time: Timestamp

        /// The event, with nothing left open.
        var content: EventDraft {
            var content = draft.draft
            content.lane = draft.lane
            content.time = time
            return content
        }
    }

    /// - Parameters:
    ///   - source: the incarnation that records.
    ///   - next: the place of the first event that is new.
    ///   - floor: the time before which no event is that has none of its own.
    init(_ catalogue: EventCatalogue, by source: UInt128, at next: Position, _ floor: TimeFloor) {
        self.catalogue = catalogue
        self.source = source
        self.next = next
        self.floor = floor
    }

    /// Gives an event its place.
    ///
    /// - Parameter now: the time, asked for if the event has none.
    /// - Throws: `EventError`: `idReused` for an id that another event of the batch has; `refused` for
    ///   a value that nothing can replace.
    mutating func add(_ prepared: PreparedEvent, now: () -> Int64) throws(EventError) {
        let draft: CheckedDraft
        let prefix: LinePrefix
        var replaced: Stamp?
        var isReceived = false
        switch prepared {
        case .known(let appended): return results.append(appended)
        case .new(let new, let stamp):
            draft = new
            replaced = stamp
            prefix = LinePrefix(own: draft.id.integer, source: source, at: next)
        case .received(let event):
            isReceived = true
            draft = CheckedDraft(event, by: catalogue)
            prefix = LinePrefix(
                id: event.draft.id.integer, source: event.source.integer, sequence: event.sequence,
                position: next)
        }
        if let twin = earlier[prefix.id] {
            let twin = placed[Int(twin)]
            guard isReceived || twin.content.isSameContent(as: draft.draft) else {
                throw EventError.idReused(
                    draft.id, at: twin.prefix.position, type: twin.content.type)
            }
            return results.append(
                Appended(id: draft.id, position: twin.prefix.position, isNew: false))
        }
        earlier.set(prefix.id, to: UInt64(placed.count))
        var time = draft.draft.time ?? max(floor.time(now: now()), raised)
        if let replaced {
            time = try time.behind(replaced, source: source, sequence: next.rawValue)
            raised = max(raised, time)
        }
        floor.add(time)
        placed.append(PlacedDraft(draft: draft, prefix: prefix, time: time))
        results.append(Appended(id: draft.id, position: next, isNew: true))
        next = next.next
    }

    /// The lines of all, each read back.
    ///
    /// - Throws: `EventError`: `tooLarge`, `badAttribute`.
    func batch() throws(EventError) -> Batch {
        var batch = Batch(results: results)
        for (lines, events) in try encoded(from: 0) {
            batch.lines.append(lines)
            batch.events += events
        }
        guard batch.lines.bytes.count <= WriterSizes.commitPlaintextBytesMax else {
            throw EventError(
                .tooLarge,
                "the batch has \(batch.lines.bytes.count) bytes; at most "
                    + "\(WriterSizes.commitPlaintextBytesMax) can be recorded together")
        }
        return batch
    }

    /// The events from a number on, without those that the log had already. Each is read back from its line.
    ///
    /// - Throws: as `batch()`.
    func events(from first: Int) throws(EventError) -> [Event] {
        try encoded(from: first).flatMap(\.events)
    }

    private func encoded(
        from first: Int
    ) throws(EventError) -> [(lines: CommitLines, events: [Event])] {
        let shares = Array(placed[first...]).parallelShares { share in
            Result { () throws(EventError) in try Self.encode(share) }
        }
        return try shares.map { (share) throws(EventError) in try share.get() }
    }

    private static func encode(
        _ share: ArraySlice<PlacedDraft>
    ) throws(EventError) -> (lines: CommitLines, events: [Event]) {
        var lines = CommitLines()
        lines.reserveCapacity(lines: share.count, bytes: share.count * 512)
        var events: [Event] = []
        events.reserveCapacity(share.count)
        for placed in share {
            let content = placed.content
            let line = lines.append(placed.prefix, time: placed.time.milliseconds) {
                LineEncoder.append(content, placed.prefix, to: &$0)
            }
            try check(placed, content, lines.bytes.span.bytes.extracting(line))
            events.append(
                Event(
                    placed.prefix, content, placed.draft.type, placed.draft.decoded,
                    line.count))
        }
        return (lines, events)
    }

    /// What is written is read first: a line that would not come back as this event must never be
    /// acknowledged.
    private static func check(
        _ placed: PlacedDraft, _ content: EventDraft, _ line: RawSpan
    ) throws(EventError) {
        // What comes from elsewhere was shipped already.
        let isShipped = placed.prefix.isOwn && placed.draft.type.action != nil
        let most = isShipped ? EventCatalogue.shippedBytesMax : WriterSizes.lineBytesMax
        guard line.byteCount <= most else {
            throw EventError(
                .tooLarge,
                "\(content.type) has \(line.byteCount) bytes as a line; at most \(most) fit"
                    + (isShipped ? " for a type that is shipped" : "")
                    + ". Keep large content as a file, and name the file in the event")
        }
        let purpose: LineDecoder.Purpose = isShipped ? .ship : .record
        if LineDecoder.surelyReads(line, placed.prefix, as: content, to: purpose) { return }
        guard try LineDecoder.decode(line, to: purpose).draft == content else {
            throw EventError(
                .badAttribute, "the event would not be read back as it was given")
        }
    }
}

extension EventError {
    /// - Parameter type: the type of the event that has the id; nil where it was compacted.
    static func idReused(_ id: UUID, at position: Position, type: String? = nil) -> EventError {
        EventError(
            .idReused,
            "the id \(id.text) belongs to the event at position \(position)"
                + (type.map { " of the type \($0)" } ?? "") + ", which has another content. Record "
                + "other content under a new id")
    }
}

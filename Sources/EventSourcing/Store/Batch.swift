// From accepted drafts to the lines of a commit: positions are assigned in order, then all cores encode
// the lines and read them back. Spec/overview.md.

import Foundation
import LogFormat

/// Events that are about to be appended together.
struct Batch {
    var lines = CommitLines()
    var events: [Event] = []
    var results: [Appended] = []
}

/// A draft that its type's rule has accepted. A class, since it is passed on often.
final class CheckedDraft: Sendable {
    /// The normalised draft. Its lane and time may be nil.
    let draft: EventDraft
    let lane: String
    var id: UUID { draft.id }
    let type: CataloguedType
    /// The decoded data; nil if the rule did not decode them.
    let decoded: AnyDecoded?

    /// Checks a draft against the rule of its type.
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

    /// Wraps an event that another log has recorded. No rule is checked.
    init(_ event: ForeignEvent, by catalogue: borrowing EventCatalogue) {
        decoded = nil
        type = catalogue.known[event.draft.type]
        lane = catalogue.lane(of: event.draft)
        draft = event.draft
    }
}

extension CheckedDraft {
    /// How far ahead of the clock an app may set an event's time. A mistake in the time zone stays below
    /// this bound and loses no event; a mistake in the unit exceeds it and cannot set a value for ever.
    private static let acceptedLeadMillisecondsMax: Int64 = 24 * 3_600_000

    /// Refuses what only events from another log may have or be: reserved types, times far ahead of the clock,
    /// and events without effect by the views.
    ///
    /// - Parameter now: the corrected time, in milliseconds since 1970.
    func checkIsNew(_ catalogue: EventCatalogue, _ views: ViewSet, now: Int64) throws(EventError) {
        guard type.hasRule || !catalogue.isReserved(draft.type) else {
            throw EventCatalogue.reserved(draft.type, "the event \(draft.id.text)")
        }
        // A replacement of a retracted event is checked by its decision: views still show the retracted ones.
        if type.isRefusable, draft.causeID == nil,
            let reason = catalogue[draft.type]?.refusal?(draft, views)
        {
            throw EventError(
                .refused, "the event \(draft.id.text) (\(draft.type)): \(reason)")
        }
        guard let time = draft.time, time.milliseconds - now > Self.acceptedLeadMillisecondsMax
        else { return }
        throw EventError(
            .refused,
            "the event \(draft.id.text) (\(draft.type)) has the time \(time), which is more than 24 hours ahead of "
                + "the clock (\(Timestamp(milliseconds: now))). Omit the time or correct it")
    }
}

/// The outcome of validating one event, before it has a position.
enum PreparedEvent {
    /// The log already has the event.
    case known(Appended)
    /// A new event of this log, with the LWW timestamp of the value that it replaces.
    case new(CheckedDraft, replacing: LWWTimestamp?)
    /// An event from another log, or from an earlier incarnation of this one.
    case received(ForeignEvent)
}

/// Assigns positions and times to events and encodes them as lines.
struct BatchEncoder {
    private let catalogue: EventCatalogue
    private let source: UInt128
    private var next: Position
    private var floor: TimeFloor
    /// The index in `placed` of each id: each id is recorded once.
    private var indexByID = IDTable()
    private var placed: [PlacedDraft] = []
    private var results: [Appended] = []
    /// The greatest time of an event that replaces a value. Later events without a time get at least this
    /// one, so that they win over it.
    private var raised = Timestamp(milliseconds: .min)

    private struct PlacedDraft: Sendable {
        /// The event's index among all events of the batch, for messages.
        let index: Int
        let draft: CheckedDraft
        let prefix: LinePrefix
        let time: Timestamp

        /// The event, with its lane and its time set.
        var content: EventDraft {
            var content = draft.draft
            content.lane = draft.lane
            content.time = time
            return content
        }
    }

    /// - Parameters:
    ///   - source: the incarnation that records the events.
    ///   - next: the position of the first new event.
    ///   - floor: the earliest time of an event that has no time of its own.
    init(_ catalogue: EventCatalogue, by source: UInt128, at next: Position, _ floor: TimeFloor) {
        self.catalogue = catalogue
        self.source = source
        self.next = next
        self.floor = floor
    }

    /// Assigns the next position to an event, and a time if it has none.
    ///
    /// - Parameter now: the clock, called only if the event has no time.
    /// - Throws: `EventError`: `idReused` for an id that another event of the batch has; `refused` for
    ///   a value that nothing can replace.
    mutating func assignPosition(
        to prepared: PreparedEvent, now: () -> Int64
    ) throws(EventError) {
        let draft: CheckedDraft
        let prefix: LinePrefix
        var replaced: LWWTimestamp?
        var isReceived = false
        switch prepared {
        case .known(let appended): return results.append(appended)
        case .new(let new, let lwwTimestamp):
            draft = new
            replaced = lwwTimestamp
            prefix = LinePrefix(own: draft.id.integer, source: source, at: next)
        case .received(let event):
            isReceived = true
            draft = CheckedDraft(event, by: catalogue)
            prefix = LinePrefix(
                id: event.draft.id.integer, source: event.source.integer, sequence: event.sequence,
                position: next)
        }
        if let twin = indexByID[prefix.id] {
            let twin = placed[Int(twin)]
            guard isReceived || twin.content.isSameContent(as: draft.draft) else {
                throw EventError.idReused(
                    draft.id, at: twin.prefix.position, type: twin.content.type)
            }
            return results.append(
                Appended(id: draft.id, position: twin.prefix.position, isNew: false))
        }
        indexByID.set(prefix.id, to: UInt64(placed.count))
        var time = draft.draft.time ?? max(floor.time(now: now()), raised)
        if let replaced {
            time = try time.raised(above: replaced, source: source, sequence: next.rawValue)
            raised = max(raised, time)
        }
        floor.include(time)
        placed.append(
            PlacedDraft(index: results.count, draft: draft, prefix: prefix, time: time))
        results.append(Appended(id: draft.id, position: next, isNew: true))
        next = next.next
    }

    /// Encodes all events. Each line is read back.
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

    /// Encodes the new events from index `first` on. Each line is read back.
    ///
    /// - Returns: the events; known ones are not among them.
    /// - Throws: as `batch()`.
    func events(from first: Int) throws(EventError) -> [Event] {
        try encoded(from: first).flatMap(\.events)
    }

    private func encoded(
        from first: Int
    ) throws(EventError) -> [(lines: CommitLines, events: [Event])] {
        let count = results.count
        let shares = Array(placed[first...]).parallelShares { share in
            Result { () throws(EventError) in try Self.encode(share, of: count) }
        }
        return try shares.map { (share) throws(EventError) in try share.get() }
    }

    /// Encodes some of the events.
    ///
    /// - Parameter count: the number of all events of the batch, for messages.
    private static func encode(
        _ share: ArraySlice<PlacedDraft>, of count: Int
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
            do throws(EventError) {
                try check(placed, content, lines.bytes.span.bytes.extracting(line))
            } catch {
                throw error.ofEvent(placed.index, in: count)
            }
            events.append(
                Event(
                    placed.prefix, content, placed.draft.type, placed.draft.decoded,
                    line.count))
        }
        return (lines, events)
    }

    /// Reads a line back before it is written: a line that does not decode to its event must never be
    /// acknowledged.
    private static func check(
        _ placed: PlacedDraft, _ content: EventDraft, _ line: RawSpan
    ) throws(EventError) {
        // A foreign event has already been shipped.
        let isShipped = placed.prefix.isOwn && placed.draft.type.action != nil
        let bytesMax = isShipped ? EventCatalogue.shippedBytesMax : WriterSizes.lineBytesMax
        guard line.byteCount <= bytesMax else {
            throw EventError(
                .tooLarge,
                "\(content.type) has \(line.byteCount) bytes as a line; at most \(bytesMax) fit"
                    + (isShipped ? " for a type that is shipped" : "")
                    + ". Store large content in a file and record the file's name")
        }
        let purpose: LineDecoder.Purpose = isShipped ? .ship : .record
        if LineDecoder.certainlyDecodes(line, placed.prefix, as: content, to: purpose) { return }
        do throws(EventError) {
            guard try LineDecoder.decode(line, to: purpose).draft == content else {
                throw EventError(
                    .badAttribute, "the event cannot be encoded: its line decodes to another event")
            }
        } catch {
            throw error.ofType(content.type)
        }
    }
}

extension EventError {
    /// The error for an id that another event has.
    ///
    /// - Parameter type: the type of the event that has the id; nil if compaction has removed it.
    static func idReused(_ id: UUID, at position: Position, type: String? = nil) -> EventError {
        EventError(
            .idReused,
            "the id \(id.text) belongs to the event at position \(position)"
                + (type.map { " of the type \($0)" } ?? "") + ", which has different content. Use "
                + "a new id")
    }
}

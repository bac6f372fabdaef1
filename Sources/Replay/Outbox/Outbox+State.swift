// The outbox as bytes for a checkpoint: what it says, not how it holds it, so that tombstones leave
// no trace. Spec/protocol/sync-records.md, OUT-8.

import EventSourcing
import Foundation
import LogFormat

extension Outbox {
    public func encodedState() -> [UInt8]? {
        var writer = StateWriter()
        writer.add(count: ignored)
        writer.add(through.rawValue)
        writer.add(lastRecord.rawValue)
        writer.add(lastContact)
        writer.add(clockOffset < 0)
        writer.add(UInt64(clockOffset.magnitude))
        writer.add(pulled != nil)
        if let pulled {
            writer.add(pulled.cursor)
            writer.add(pulled.stamp)
        }
        writer.add(folded != nil)
        if let folded {
            writer.add(folded.replaces.rawValue)
            writer.add(folded.stamp)
        }
        writer.add(count: unknown.runs.count)
        var end: UInt64 = 0
        for run in unknown.runs {
            writer.add(run.lowerBound - end)
            writer.add(run.upperBound - run.lowerBound)
            end = run.upperBound
        }
        writer.add(count: unknownAnswers.count)
        end = 0
        for (position, answered) in unknownAnswers.sorted(by: { $0.key < $1.key }) {
            writer.add(position - end)
            writer.add(answered.id)
            answered.answer.encode(to: &writer)
            end = position
        }
        writer.add(count: count)
        var last = Position.zero
        for entry in entries {
            writer.add(entry.position.rawValue - last.rawValue)
            entry.encode(to: &writer)
            last = entry.position
        }
        return writer.bytes
    }

    public init(encodedState: [UInt8]) throws {
        var reader = StateReader(encodedState)
        ignored = try reader.tally()
        // Far from the largest number, so that counting on never overflows.
        through = Position(UInt64(try reader.nonNegative()))
        lastRecord = Position(try reader.integer())
        guard lastRecord <= through else {
            throw reader.fault("a record lies behind the last line")
        }
        lastContact = try reader.time()
        let isBehind = try reader.bool()
        let offset = Int64(try reader.nonNegative())
        guard offset <= SyncSettled.clockOffsetMax, offset > 0 || !isBehind else {
            throw reader.fault("a clock is further off than a record holds")
        }
        clockOffset = isBehind ? -offset : offset
        if try reader.bool() {
            let cursor = try reader.string()
            guard !cursor.isEmpty, cursor.utf8.count <= SyncPulled.cursorBytesMax else {
                throw reader.fault("a cursor is longer than a record holds")
            }
            pulled = Pulled(cursor: cursor, stamp: try reader.stamp())
        }
        if try reader.bool() {
            let replaces = Position(try reader.integer())
            guard replaces < lastRecord else {
                throw reader.fault("a record stands for later ones")
            }
            folded = Folded(replaces: replaces, stamp: try reader.stamp())
        }
        var last: UInt64 = 0
        for _ in 0..<(try reader.count()) {
            // At least one position lies between two runs.
            let lower = try position(behind: last, atLeast: last == 0 ? 1 : 2, &reader)
            last = try position(behind: lower, atLeast: 0, &reader)
            unknown.append(lower...last)
        }
        last = 0
        for _ in 0..<(try reader.count()) {
            last = try position(behind: last, atLeast: 1, &reader)
            guard unknown.intersects(last...last) else {
                throw reader.fault("an answer is to no event of an unknown type")
            }
            unknownAnswers[last] = UnknownAnswer(
                id: try reader.uuid(), answer: try OutboxEntry.Answer(&reader))
        }
        last = 0
        for _ in 0..<(try reader.count()) {
            last = try position(behind: last, atLeast: 1, &reader)
            guard !unknown.intersects(last...last) else {
                throw reader.fault("a line is both of a shipped and of an unknown type")
            }
            queue.append(try OutboxEntry(at: Position(last), &reader))
        }
        try reader.finish()
    }

    /// Reads how far a position lies behind another; it must not lie behind the last line.
    private func position(
        behind last: UInt64, atLeast distanceMin: UInt64, _ reader: inout StateReader
    ) throws(EventError) -> UInt64 {
        let distance = try reader.integer()
        let (position, overflow) = last.addingReportingOverflow(distance)
        guard distance >= distanceMin, !overflow, position <= through.rawValue else {
            throw reader.fault("a position is out of order")
        }
        return position
    }
}

extension OutboxEntry {
    /// Writes everything but the position.
    fileprivate func encode(to writer: inout StateWriter) {
        writer.add(id)
        writer.add(source)
        writer.add(action)
        writer.add(entityId)
        writer.add(lane)
        writer.add(timestamp)
        writer.add(count: lineBytes)
        writer.add(answer != nil)
        answer?.encode(to: &writer)
    }

    fileprivate init(at position: Position, _ reader: inout StateReader) throws(EventError) {
        self.init(
            at: position,
            Fields(
                id: try reader.uuid(), source: try reader.uuid(), action: try reader.string(),
                entityId: try reader.string(), lane: try reader.string(),
                timestamp: try reader.time(), lineBytes: try reader.nonNegative()))
        guard lineBytes <= FormatLimit.lineBytesMax else {
            throw reader.fault("a line is longer than one can be")
        }
        if try reader.bool() { answer = try Answer(&reader) }
    }
}

extension OutboxEntry.Answer {
    fileprivate func encode(to writer: inout StateWriter) {
        writer.add(outcome.rawValue)
        writer.add(count: retryCount)
        writer.add(at)
        writer.add(isFinal)
        writer.add(current != nil)
        if let current { writer.add(current) }
        for text in [code, detail] {
            writer.add(text != nil)
            if let text { writer.add(text) }
        }
    }

    fileprivate init(_ reader: inout StateReader) throws(EventError) {
        guard let outcome = SyncSettled.Outcome(rawValue: try reader.string()) else {
            throw reader.fault("an answer is of no known kind")
        }
        self.outcome = outcome
        retryCount = try reader.nonNegative()
        at = try reader.time()
        isFinal = try reader.bool()
        if try reader.bool() { current = try reader.uuid() }
        code = try Self.text(SyncSettled.codeBytesMax, &reader)
        detail = try Self.text(SyncSettled.detailBytesMax, &reader)
        guard retryCount <= Retries.max else {
            throw reader.fault("an event was retried too often")
        }
    }

    /// Reads a text that a record could hold.
    private static func text(
        _ bytesMax: Int, _ reader: inout StateReader
    ) throws(EventError) -> String? {
        guard try reader.bool() else { return nil }
        let text = try reader.string()
        guard EntityID(SyncSettled.cut(text, bytesMax)) == EntityID(text) else {
            throw reader.fault("a text is longer than a record holds")
        }
        return text
    }
}

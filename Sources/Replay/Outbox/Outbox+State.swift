// The encoding of the outbox in a checkpoint. It holds the content and not the layout in memory, so
// tombstones are not encoded. Spec/protocol/sync-records.md, OUT-8.

import EventSourcing
import Foundation
import LogFormat

extension Outbox {
    public func encodedState() -> [UInt8]? {
        var writer = StateWriter()
        writer.write(count: ignored)
        writer.write(through.rawValue)
        writer.write(lastRecord.rawValue)
        writer.write(lastContact)
        writer.write(clockOffset: clockOffset)
        writer.write(clockCandidate != nil)
        if let clockCandidate { writer.write(clockOffset: clockCandidate) }
        writer.write(pulled != nil)
        if let pulled {
            writer.write(pulled.cursor != nil)
            if let cursor = pulled.cursor { writer.write(cursor) }
            pulled.peer.encode(to: &writer)
            writer.write(pulled.lwwTimestamp)
        }
        writer.write(folded != nil)
        if let folded {
            writer.write(folded.replaces.rawValue)
            writer.write(folded.lwwTimestamp)
        }
        writer.write(count: unknown.runs.count)
        var end: UInt64 = 0
        for run in unknown.runs {
            writer.write(run.lowerBound - end)
            writer.write(run.upperBound - run.lowerBound)
            end = run.upperBound
        }
        writer.write(count: unknownAnswers.count)
        end = 0
        for (position, answered) in unknownAnswers.sorted(by: { $0.key < $1.key }) {
            writer.write(position - end)
            writer.write(answered.id)
            answered.answer.encode(to: &writer)
            end = position
        }
        writer.write(count: requests.count)
        end = 0
        for (position, request) in requests.sorted(by: { $0.key < $1.key }) {
            writer.write(position - end)
            writer.write(request.position.rawValue)
            writer.write(request.since)
            end = position
        }
        writer.write(count: count)
        writer.reserve(bytes: writer.bytes.count + count * OutboxEntry.encodedBytes)
        var last = Position.zero
        for entry in entries {
            writer.write(entry.position.rawValue - last.rawValue)
            entry.encode(to: &writer)
            last = entry.position
        }
        return writer.bytes
    }

    public init(encodedState: [UInt8]) throws {
        var reader = StateReader(encodedState)
        ignored = try reader.tally()
        // Below `Int64.max`, so that incrementing never overflows.
        through = Position(UInt64(try reader.nonNegative()))
        lastRecord = Position(try reader.integer())
        guard lastRecord <= through else {
            throw reader.fault("the position of a record is after the last line")
        }
        lastContact = try reader.time()
        clockOffset = try reader.clockOffset()
        if try reader.bool() { clockCandidate = try reader.clockOffset() }
        if try reader.bool() {
            let cursor = try reader.bool() ? try reader.string() : nil
            guard 1...SyncPulled.cursorBytesMax ~= cursor?.utf8.count ?? 1 else {
                throw reader.fault("a cursor is longer than a record can hold")
            }
            pulled = Pulled(
                cursor: cursor, peer: try SyncPeer(&reader),
                lwwTimestamp: try reader.lwwTimestamp())
        }
        if try reader.bool() {
            let replaces = Position(try reader.integer())
            guard replaces < lastRecord else {
                throw reader.fault("a folded record replaces later records")
            }
            folded = Folded(replaces: replaces, lwwTimestamp: try reader.lwwTimestamp())
        }
        var last: UInt64 = 0
        for _ in 0..<(try reader.count()) {
            // There is at least one position between two runs.
            let lower = try position(after: last, atLeast: last == 0 ? 1 : 2, &reader)
            last = try position(after: lower, atLeast: 0, &reader)
            unknown.append(lower...last)
        }
        last = 0
        for _ in 0..<(try reader.count()) {
            last = try position(after: last, atLeast: 1, &reader)
            guard unknown.intersects(last...last) else {
                throw reader.fault("an answer belongs to no event of an unknown type")
            }
            unknownAnswers[last] = UnknownAnswer(
                id: try reader.uuid(), answer: try OutboxEntry.Answer(&reader))
        }
        last = 0
        for _ in 0..<(try reader.count()) {
            last = try position(after: last, atLeast: 1, &reader)
            let record = Position(try reader.integer())
            guard record.rawValue > last, record <= through else {
                throw reader.fault("a request is recorded before its event")
            }
            requests[last] = RecordedRequest(position: record, since: try reader.time())
        }
        last = 0
        for _ in 0..<(try reader.count()) {
            last = try position(after: last, atLeast: 1, &reader)
            guard !unknown.intersects(last...last) else {
                throw reader.fault("a line has both a shipped and an unknown type")
            }
            let entry = try OutboxEntry(at: Position(last), &reader)
            queue.append(entry)
            adjustCounts(for: entry, by: 1)
        }
        try reader.finish()
    }

    /// Reads a position as the distance from `last`; it must not be after the last line.
    private func position(
        after last: UInt64, atLeast distanceMin: UInt64, _ reader: inout StateReader
    ) throws(EventError) -> UInt64 {
        let distance = try reader.integer()
        let (position, overflow) = last.addingReportingOverflow(distance)
        guard distance >= distanceMin, !overflow, position <= through.rawValue else {
            throw reader.fault("a position is out of order")
        }
        return position
    }
}

extension StateWriter {
    fileprivate mutating func write(clockOffset: Int64) {
        write(clockOffset < 0)
        write(UInt64(clockOffset.magnitude))
    }
}

extension StateReader {
    fileprivate mutating func clockOffset() throws(EventError) -> Int64 {
        let isBehind = try bool()
        let offset = Int64(try nonNegative())
        guard offset <= SyncSettled.clockOffsetMax, offset > 0 || !isBehind else {
            throw fault("a clock offset is larger than a record can hold")
        }
        return isBehind ? -offset : offset
    }
}

extension OutboxEntry {
    /// About the encoded size of an entry.
    fileprivate static let encodedBytes = 128

    /// Writes everything but the position.
    fileprivate func encode(to writer: inout StateWriter) {
        writer.write(id)
        writer.write(source)
        writer.write(action)
        writer.write(entityId)
        writer.write(lane)
        writer.write(timestamp)
        writer.write(count: lineBytes)
        writer.write(answer != nil)
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
            throw reader.fault("a line is longer than \(FormatLimit.lineBytesMax) bytes")
        }
        if try reader.bool() { answer = try Answer(&reader) }
    }
}

extension OutboxEntry.Answer {
    fileprivate func encode(to writer: inout StateWriter) {
        writer.write(outcome.rawValue)
        writer.write(count: retryCount)
        writer.write(at)
        writer.write(isFinal)
        writer.write(count: failuresAlone)
        writer.write(current != nil)
        if let current { writer.write(current) }
        for text in [code, detail] {
            writer.write(text != nil)
            if let text { writer.write(text) }
        }
    }

    fileprivate init(_ reader: inout StateReader) throws(EventError) {
        guard let outcome = SyncSettled.Outcome(rawValue: try reader.string()) else {
            throw reader.fault("an answer has an unknown outcome")
        }
        self.outcome = outcome
        retryCount = try reader.nonNegative()
        at = try reader.time()
        isFinal = try reader.bool()
        failuresAlone = try reader.nonNegative()
        if try reader.bool() { current = try reader.uuid() }
        code = try Self.text(SyncSettled.codeBytesMax, &reader)
        detail = try Self.text(SyncSettled.detailBytesMax, &reader)
        guard retryCount <= Retries.max else {
            throw reader.fault("a retry count is more than \(Retries.max)")
        }
        guard failuresAlone <= Retries.failuresAloneMax else {
            throw reader.fault("a count of failures is more than \(Retries.failuresAloneMax)")
        }
    }

    /// Reads an optional text of at most the size that a record can hold.
    private static func text(
        _ bytesMax: Int, _ reader: inout StateReader
    ) throws(EventError) -> String? {
        guard try reader.bool() else { return nil }
        let text = try reader.string()
        guard EntityID(SyncSettled.truncated(text, bytesMax)) == EntityID(text) else {
            throw reader.fault("a text is longer than a record can hold")
        }
        return text
    }
}

// The events of a log in batches, for the projections of a database: only those of their types, and the position
// of the last one that was read.

import Daybook
import GRDB

/// Consecutive events of a log, without those that no projection wants.
struct LogBatch: Sendable {
    /// In their newest form.
    var events: [Event] = []
    /// The last position that was read, whether or not its event is wanted.
    var last: Position
    /// The id of the last event that was read; nil if compaction has removed all of them.
    var lastID: String?
}

/// Reads a log from a position to its durable end.
struct LogBatchReader: Sendable {
    private let catalogue: EventCatalogue
    private let types: Set<String>?
    private var cursor: LogCursor
    private var lastID: String?

    private static let bytesMax = 4 * 1_024 * 1_024

    /// - Parameter types: the types of the wanted events; nil for all.
    init(_ store: EventStore, after position: Position, types: Set<String>?) {
        catalogue = store.catalogue
        self.types = types
        cursor = LogCursor(
            store.directory, of: store.logID.integer, after: position,
            fileSystem: store.environment.fileSystem)
    }

    /// Reads on, to at most `count` wanted events. Blocks.
    ///
    /// - Parameter end: the last durable position.
    /// - Returns: nil at the end.
    /// - Throws: `LogError`. The next call continues after the last line that was read.
    mutating func next(through end: Position, count: Int) throws -> LogBatch? {
        let start = cursor.position
        guard start < end else { return nil }
        var batch = LogBatch(last: start, lastID: lastID)
        var bytes = 0
        let (directory, catalogue, types) = (cursor.directory, catalogue, types)
        try cursor.poll(through: end) { prefix, line in
            let event = catalogue.newestForm(
                of: try LogReader.event(line, catalogue, directory: directory))
            batch.lastID = event.id.text
            bytes += line.byteCount
            if types?.contains(event.type) ?? true { batch.events.append(event) }
            return batch.events.count < count && bytes < Self.bytesMax
        }
        batch.last = cursor.position
        lastID = batch.lastID
        return batch.last > start ? batch : nil
    }
}

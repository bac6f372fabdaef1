// Reads a log as events instead of lines.

import LogFormat
import LogStorage

extension LogReader {
    /// Calls `body` with every event from position `first` on, in order, until it returns false.
    ///
    /// - Parameter readsData: called for each event; as in `LineDecoder.event`.
    /// - Throws: as `forEachLine`, and `corrupt` for a line that is not an event.
    @discardableResult
    package func forEachEvent(
        from first: Position = Position(1), catalogue: EventCatalogue,
        readsData: () -> Bool = { false }, _ body: (Event) throws -> Bool
    ) throws -> Outcome {
        try forEachLine(from: first) { prefix, line in
            try body(
                try Self.event(
                    line, prefix, catalogue, directory: directory, readsData: readsData()))
        }
    }

    /// Decodes a stored line.
    package static func event(
        _ line: RawSpan, _ catalogue: EventCatalogue, directory: String
    ) throws(LogError) -> Event {
        let prefix: LinePrefix
        do throws(FormatError) {
            prefix = try LinePrefix(line)
        } catch { throw LogError(error, path: directory, offset: nil) }
        return try event(line, prefix, catalogue, directory: directory)
    }

    /// Decodes a stored line whose prefix is decoded already.
    ///
    /// - Parameter readsData: as in `LineDecoder.event`.
    static func event(
        _ line: RawSpan, _ prefix: LinePrefix, _ catalogue: EventCatalogue, directory: String,
        readsData: Bool = false
    ) throws(LogError) -> Event {
        do throws(EventError) {
            return try LineDecoder.event(line, prefix, catalogue, readsData: readsData)
        } catch {
            throw LogError(
                .corrupt, path: directory, positions: prefix.position...prefix.position,
                "the line is not an event: \(error.detail)")
        }
    }
}

extension Log {
    /// Calls `body` with every committed event from position `first` on, in order, until it returns false.
    ///
    /// - Parameter readsData: called for each event; as in `LineDecoder.event`.
    /// - Throws: as `forEachLine`, and `corrupt` for a line that is not an event.
    package func forEachEvent(
        from first: Position, catalogue: EventCatalogue, readsData: () -> Bool = { false },
        _ body: (Event) throws -> Bool
    ) throws {
        try forEachLine(from: first) { prefix, line in
            try body(
                try LogReader.event(
                    line, prefix, catalogue, directory: directory, readsData: readsData()))
        }
    }
}

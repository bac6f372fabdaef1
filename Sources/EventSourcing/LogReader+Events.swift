// Events instead of lines.

import LogFormat
import LogStorage

extension LogReader {
    /// Calls `body` with every event whose position is at least `first`, in order; false stops.
    ///
    /// - Throws: as `forEachLine`, and `corrupt` for a line that is not an event.
    @discardableResult
    package func forEachEvent(
        from first: Position = Position(1), catalogue: EventCatalogue,
        _ body: (Event) throws -> Bool
    ) throws -> Outcome {
        try forEachLine(from: first) { prefix, line in
            try body(try Self.event(line, prefix, catalogue, directory: directory))
        }
    }

    /// The event of a stored line.
    package static func event(
        _ line: RawSpan, _ catalogue: EventCatalogue, directory: String
    ) throws(LogError) -> Event {
        let prefix: LinePrefix
        do throws(FormatError) {
            prefix = try LinePrefix(line)
        } catch { throw LogError(error, path: directory, offset: nil) }
        return try event(line, prefix, catalogue, directory: directory)
    }

    static func event(
        _ line: RawSpan, _ prefix: LinePrefix, _ catalogue: EventCatalogue, directory: String
    ) throws(LogError) -> Event {
        do throws(EventError) {
            return try LineDecoder.event(line, prefix, catalogue)
        } catch {
            throw LogError(
                .corrupt, path: directory, positions: prefix.position...prefix.position,
                "the line is not an event: \(error.detail)")
        }
    }
}

extension Log {
    /// Calls `body` with every committed event from a position on, in order.
    ///
    /// - Throws: as `forEachLine`, and `corrupt` for a line that is not an event.
    package func forEachEvent(
        from first: Position, catalogue: EventCatalogue, _ body: (Event) throws -> Bool
    ) throws {
        try forEachLine(from: first) { prefix, line in
            try body(try LogReader.event(line, prefix, catalogue, directory: directory))
        }
    }
}

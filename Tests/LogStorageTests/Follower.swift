// A cursor and the positions that it has delivered. Checks the guarantees at every line.

import LogFormat
import LogStorage
import Synchronization
import Testing

/// A follower of a log that records the delivered positions.
final class Follower: Sendable {
    private struct State {
        var cursor: LogCursor
        var positions: [Position] = []
        var failure: (any Error)?
    }

    private let state: Mutex<State>
    private let directory: String
    private let fileSystem: any FileSystem
    /// The line that belongs at a position.
    private let line: @Sendable (Position) -> [UInt8]?

    init(
        _ directory: String, _ fileSystem: any FileSystem,
        line: @escaping @Sendable (Position) -> [UInt8]?
    ) {
        self.directory = directory
        self.fileSystem = fileSystem
        self.line = line
        state = Mutex(State(cursor: LogCursor(directory, fileSystem: fileSystem)))
    }

    /// The cursor's position.
    var position: Position { state.withLock { $0.cursor.position } }
    /// The delivered positions.
    var positions: [Position] { state.withLock { $0.positions } }

    /// Continues from its position with a new cursor.
    func resume() {
        state.withLock { state in
            state.cursor = LogCursor(
                directory, after: state.cursor.position, fileSystem: fileSystem)
        }
    }

    /// Reads the new lines, at most `linesMax`; throws once at the last of them, so that it is repeated.
    func poll(linesMax: Int = .max) {
        state.withLock { state in
            guard state.failure == nil else { return }
            var positions: [Position] = []
            var last = state.positions.last ?? .zero
            struct Refusal: Error {}
            func deliver(_ cursor: inout LogCursor, refusing: Int?) throws {
                try cursor.poll { prefix, bytes in
                    if positions.count == refusing { throw Refusal() }
                    try #require(prefix.position > last, "position \(prefix.position) again")
                    try #require(line(prefix.position) == bytes.array, "at \(prefix.position)")
                    last = prefix.position
                    positions.append(last)
                    return positions.count < linesMax
                }
            }
            do {
                do {
                    try deliver(&state.cursor, refusing: linesMax == .max ? nil : linesMax - 1)
                } catch is Refusal {
                    try deliver(&state.cursor, refusing: nil)
                }
            } catch let error as LogError where error.code == .noSuchLog && last == .zero {
                // It has not been created yet.
            } catch {
                state.failure = error
            }
            state.positions += positions
        }
    }

    /// Reads the whole log with a new reader, which must find no damage.
    func readAnew() {
        do {
            var last = Position.zero
            try LogReader(directory, fileSystem: fileSystem).forEachLine { prefix, bytes in
                try #require(prefix.position > last, "position \(prefix.position) again")
                try #require(line(prefix.position) == bytes.array, "at \(prefix.position)")
                last = prefix.position
                return true
            }
        } catch let error as LogError where error.code == .noSuchLog {
            // It has not been created yet.
        } catch {
            state.withLock { $0.failure = $0.failure ?? error }
        }
    }

    /// Throws the first failure, if there was one.
    func check() throws {
        if let failure = state.withLock({ $0.failure }) { throw failure }
    }
}

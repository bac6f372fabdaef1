// A cursor and everything that it has delivered, held to what is promised at every line.

import LogFormat
import LogStorage
import Synchronization
import Testing

/// Follows a log and remembers.
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

    /// Where it is.
    var position: Position { state.withLock { $0.cursor.position } }
    /// What was delivered.
    var positions: [Position] { state.withLock { $0.positions } }

    /// Goes on from its position with a cursor that knows nothing else.
    func resume() {
        state.withLock { state in
            state.cursor = LogCursor(
                directory, after: state.cursor.position, fileSystem: fileSystem)
        }
    }

    /// Reads what is new, or at most so many lines of it; the last of them is refused once.
    func poll(linesMax: Int = .max) {
        state.withLock { state in
            guard state.failure == nil else { return }
            var positions: [Position] = []
            var last = state.positions.last ?? .zero
            struct Refusal: Error {}
            func take(_ cursor: inout LogCursor, refusing: Int?) throws {
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
                    try take(&state.cursor, refusing: linesMax == .max ? nil : linesMax - 1)
                } catch is Refusal {
                    try take(&state.cursor, refusing: nil)
                }
            } catch let error as LogError where error.code == .noSuchLog && last == .zero {
                // It has not been created yet.
            } catch {
                state.failure = error
            }
            state.positions += positions
        }
    }

    /// Reads all with a reader that begins now; it must not find anything wrong.
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

    /// Throws what went wrong while it followed.
    func check() throws {
        if let failure = state.withLock({ $0.failure }) { throw failure }
    }
}

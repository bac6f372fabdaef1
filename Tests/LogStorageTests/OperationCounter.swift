// Fails one operation of a file system, by its number.

import LogStorage
import Synchronization

/// Counts operations and fails one of them.
final class OperationCounter: Sendable {
    private let count = Mutex(0)
    private let failing: Int
    private let code: FileError.Code

    init(failingAt failing: Int, code: FileError.Code = .io) {
        self.failing = failing
        self.code = code
    }

    /// True if the failing operation was reached.
    var hasFailed: Bool { count.withLock { $0 > failing } }

    func error(_ operation: String, _ path: String) -> FileError? {
        let number = count.withLock { count in
            defer { count += 1 }
            return count
        }
        guard number == failing else { return nil }
        return FileError(code, operation: operation, path: path, reason: "as told")
    }
}

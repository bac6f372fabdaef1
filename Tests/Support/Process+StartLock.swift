// Starts the processes of a test run one at a time.

import Foundation

/// Held while pipes are created and while a process starts. `run()` has also crashed while others started.
private let startLock = NSLock()

extension Process {
    /// Creates pipes or starts a process, while no other call does. On Linux `run()` closes in the child only the
    /// descriptors that it has enumerated: a child started meanwhile inherits this process's pipes and the socket
    /// by which `waitUntilExit` learns of the end, and a test that waits for either waits for that child, too.
    package static func withStartLock<Result>(_ start: () throws -> Result) rethrows -> Result {
        try startLock.withLock(start)
    }
}

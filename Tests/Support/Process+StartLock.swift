// Starts the processes of a test run one at a time. On Linux `run()` closes in the child only the descriptors that
// it has enumerated before: a child that starts meanwhile inherits the pipes of other tests, and the sockets by
// which `waitUntilExit` learns of an end, and a test that waits for either waits for that child, too. `run()` has
// also crashed while another process started.

import Foundation

private let startLock = NSLock()

extension Process {
    /// Starts the process while no other one starts.
    package func runAlone() throws { try startLock.withLock(run) }
}

extension Pipe {
    /// Creates a pipe while no process starts, so that only its own process inherits it.
    package static func betweenStarts() -> Pipe { startLock.withLock(Pipe.init) }
}

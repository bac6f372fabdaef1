// Wakes all threads that wait at a socket. It is a pipe; a byte that is never read makes it readable for
// good.

import Foundation

/// A signal that is raised once, and that `poll` can wait for.
package final class StopSignal: Sendable {
    let readEnd: Int32
    private let writeEnd: Int32

    package init() throws {
        var ends: [Int32] = [-1, -1]
        guard pipe(&ends) == 0 else { throw SocketError.failed("pipe", errno) }
        (readEnd, writeEnd) = (ends[0], ends[1])
        for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
    }

    deinit {
        close(readEnd)
        close(writeEnd)
    }

    package func raise() {
        var byte: UInt8 = 1
        _ = write(writeEnd, &byte, 1)
    }

    package var isRaised: Bool { wait(milliseconds: 0) }

    /// Waits for the signal.
    ///
    /// - Returns: false if the time passed without it.
    package func wait(milliseconds: Int) -> Bool {
        var ends = [pollfd(fd: readEnd, events: Int16(POLLIN), revents: 0)]
        return poll(&ends, 1, Int32(clamping: milliseconds)) > 0
    }
}

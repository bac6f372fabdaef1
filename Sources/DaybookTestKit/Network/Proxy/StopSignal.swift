// Wakes everybody who waits at a socket: a pipe with a byte in it that nobody takes out. Part of
// HostileProxy.

import Foundation

/// Something that happens once, and that `poll` can wait for.
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

    /// Waits, and returns whether it was raised.
    package func wait(milliseconds: Int) -> Bool {
        var ends = [pollfd(fd: readEnd, events: Int16(POLLIN), revents: 0)]
        return poll(&ends, 1, Int32(clamping: milliseconds)) > 0
    }
}

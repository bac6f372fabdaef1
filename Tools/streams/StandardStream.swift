// The three streams that every process has, unless it was started without one. Written without
// FileHandle, which ends the process where standard error cannot be written. Used by logtool and
// syncserver.

import Foundation

/// Standard output or standard error.
package enum StandardStream: Int32 {
    case output = 1
    case error = 2

    /// Takes the places of streams that are closed, and lets writing to a closed pipe fail instead of
    /// ending the process. Otherwise the first file that is opened would be standard output, and what
    /// is printed would be written into the log. Call it before anything is opened.
    package static func prepare() {
        signal(SIGPIPE, SIG_IGN)
        // A stream cannot be used the wrong way round: reading and writing fail as before.
        let modes = [
            (STDIN_FILENO, O_WRONLY), (STDOUT_FILENO, O_RDONLY), (STDERR_FILENO, O_WRONLY),
        ]
        for (stream, mode) in modes where fcntl(stream, F_GETFD) < 0 {
            // The lowest free number is this one: those below are open by now.
            _ = open("/dev/null", mode)
        }
    }

    /// Writes all bytes.
    ///
    /// - Returns: why that failed, as `errno` says it; nil if it did not.
    package func write(_ bytes: [UInt8]) -> Int32? {
        bytes.withUnsafeBytes { bytes in
            var written = 0
            while written < bytes.count {
                let count = systemWrite(
                    rawValue, UnsafeRawBufferPointer(rebasing: bytes[written...]))
                if count >= 0 {
                    written += count
                    continue
                }
                let reason = errno
                switch reason {
                case EINTR: continue
                case EAGAIN:
                    var place = pollfd(fd: rawValue, events: Int16(POLLOUT), revents: 0)
                    _ = poll(&place, 1, -1)
                default: return reason
                }
            }
            return nil
        }
    }

    /// Ends the process as a write to a closed pipe does where the signal is not ignored.
    package static func endByBrokenPipe() {
        signal(SIGPIPE, SIG_DFL)
        raise(SIGPIPE)
    }
}

private func systemWrite(_ stream: Int32, _ bytes: UnsafeRawBufferPointer) -> Int {
    write(stream, bytes.baseAddress, bytes.count)
}

// Standard output and standard error of a process, which may have been started without them. Does not
// use FileHandle, which crashes if standard error cannot be written.

import Foundation

/// Standard output or standard error.
package enum StandardStream: Int32 {
    case output = 1
    case error = 2

    /// Opens /dev/null in place of closed streams, and makes writing to a closed pipe fail instead of
    /// ending the process. Otherwise the first opened file would get a stream's descriptor, and output
    /// would be written into the log. Must be called before any file is opened.
    package static func prepare() {
        signal(SIGPIPE, SIG_IGN)
        // The opposite modes, so that reading and writing still fail.
        let modes = [
            (STDIN_FILENO, O_WRONLY), (STDOUT_FILENO, O_RDONLY), (STDERR_FILENO, O_WRONLY),
        ]
        for (stream, mode) in modes where fcntl(stream, F_GETFD) < 0 {
            // Gets this stream's number: it is the lowest free one, since those below are open.
            _ = open("/dev/null", mode)
        }
        // The argument parser prints help through stdio, and does not check whether that succeeds.
        atexit {
            guard fflush(nil) != 0 else { return }
            let reason = errno
            if reason == EPIPE { StandardStream.endByBrokenPipe() }
            let program = CommandLine.arguments.first ?? ""
            let text = "\(program.split(separator: "/").last ?? ""): standard output: "
            _ = StandardStream.error.write(
                Array("\(text)\(String(cString: strerror(reason)))\n".utf8))
            _exit(StandardStream.outputFailed)
        }
    }

    /// The exit code of an output that cannot be written, as in sysexits.h.
    private static let outputFailed: Int32 = 74

    /// Writes all bytes.
    ///
    /// - Returns: nil on success, else the value of `errno`.
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
                    var descriptor = pollfd(fd: rawValue, events: Int16(POLLOUT), revents: 0)
                    _ = poll(&descriptor, 1, -1)
                default: return reason
                }
            }
            return nil
        }
    }

    /// The error that the next write would have because the stream is closed or its reader has ended; nil if none
    /// is known. Writes nothing.
    package var closure: Int32? {
        let flags = fcntl(rawValue, F_GETFL)
        guard flags >= 0, flags & O_ACCMODE != O_RDONLY else { return EBADF }
        var descriptor = pollfd(fd: rawValue, events: 0, revents: 0)
        guard poll(&descriptor, 1, 0) > 0 else { return nil }
        return descriptor.revents & Int16(POLLERR | POLLHUP) == 0 ? nil : EPIPE
    }

    /// Ends the process by SIGPIPE, as a write to a closed pipe does by default.
    package static func endByBrokenPipe() {
        signal(SIGPIPE, SIG_DFL)
        raise(SIGPIPE)
    }
}

private func systemWrite(_ stream: Int32, _ bytes: UnsafeRawBufferPointer) -> Int {
    write(stream, bytes.baseAddress, bytes.count)
}

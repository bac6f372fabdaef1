// What logtool needs of the streams and files of its process beside StandardStreams, which it shares
// with syncserver. Called when a command starts.

import ArgumentParser
import Foundation
@_exported import StandardStreams

extension StandardStream {
    /// Descriptors that the system's libraries need for any command, with a margin: they end the
    /// process where they get none. For what a log needs there are errors.
    static let descriptorsMin = 6
    /// The same for a command that exchanges with a server.
    static let networkDescriptorsMin = 32

    /// Sees to it that the process can open some files.
    ///
    /// - Throws: `Exit.io`, said on standard error.
    static func requireDescriptors(_ count: Int) throws(ExitCode) {
        var opened: [Int32] = []
        defer { for descriptor in opened { close(descriptor) } }
        while opened.count < count {
            let descriptor = open("/dev/null", O_RDONLY | O_CLOEXEC)
            guard descriptor >= 0 else {
                Message.error(
                    "too few open files are allowed: \(count) more are needed. Raise the limit: "
                        + "ulimit -n 64")
                throw Exit.io
            }
            opened.append(descriptor)
        }
    }
}

// Checks that the process can open enough files. StandardStreams, which logtool shares with syncserver,
// has the rest.

import ArgumentParser
import Foundation
@_exported import StandardStreams

extension StandardStream {
    /// The descriptors that the system's libraries need for any command, with a margin: they crash if
    /// they get none. A log that cannot open its files throws an error.
    static let descriptorsMin = 6
    /// The same for a command that connects to a server.
    static let networkDescriptorsMin = 32

    /// Checks that the process can open a number of files.
    ///
    /// - Throws: `Exit.io`, with a message on standard error.
    static func requireDescriptors(_ count: Int) throws(ExitCode) {
        var opened: [Int32] = []
        defer { for descriptor in opened { close(descriptor) } }
        while opened.count < count {
            let descriptor = open("/dev/null", O_RDONLY | O_CLOEXEC)
            guard descriptor >= 0 else {
                Message.error(
                    "the limit on open files is too low: \(count) more are needed; raise it: "
                        + "ulimit -n 64")
                throw Exit.io
            }
            opened.append(descriptor)
        }
    }
}

// The files that commands read.

import ArgumentParser
import Foundation

enum InputFile {
    /// Opens a file for reading.
    ///
    /// - Returns: its descriptor, which the caller closes.
    /// - Throws: an exit code, with a message: 66 for a file that is missing or not accessible, else 74.
    static func open(_ path: String) throws -> Int32 {
        let descriptor = Foundation.open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else {
            let reason = errno
            Message.error("\(path): \(String(cString: strerror(reason)))")
            throw [ENOENT, ENOTDIR, EACCES].contains(reason) ? Exit.noLog : Exit.io
        }
        return descriptor
    }
}

// A file with secrets in the clear that a person has made: a token, tokens of accounts, a private key.
// Spec/operations/secrets.md, SEC-30.

import Foundation

/// The content and the permissions of a file with secrets.
package struct SecretFile: Sendable {
    /// The content.
    package let bytes: [UInt8]
    private let path: String
    private let kind: String
    /// The permission bits.
    private let mode: UInt32

    /// The reason why a file is refused. Contains nothing of the file.
    package struct Fault: Error, Sendable, CustomStringConvertible {
        package let description: String
        /// True if the file could not be read; false if it can be read and must not be used.
        package let isUnreadable: Bool
    }

    /// Reads a regular file, or one to which a symbolic link leads: the permissions of the file count, not those
    /// of the link.
    ///
    /// - Parameters:
    ///   - kind: what messages call the file, for example `token file`.
    ///   - bytesMax: the largest size. A larger file is read no further.
    /// - Throws: `Fault`; also for a file that all users may write.
    package init(_ path: String, kind: String, bytesMax: Int) throws(Fault) {
        func unreadable(_ reason: String) -> Fault {
            Fault(description: "cannot read the \(kind) \(path): \(reason)", isUnreadable: true)
        }
        // Without O_NONBLOCK, opening a named pipe would block until a writer opens it.
        let descriptor = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC)
        var status = stat()
        guard descriptor >= 0 else { throw unreadable(String(cString: strerror(errno))) }
        let file = FileHandle(fileDescriptor: descriptor, closeOnDealloc: true)
        guard fstat(descriptor, &status) == 0, status.st_mode & S_IFMT == S_IFREG else {
            throw unreadable("it is not a regular file")
        }
        (self.path, self.kind, mode) = (path, kind, UInt32(status.st_mode) & 0o777)
        guard let data = try? file.read(upToCount: bytesMax + 1) ?? Data() else {
            throw unreadable("reading failed")
        }
        bytes = Array(data)
        guard bytes.count <= bytesMax else {
            throw unreadable("it has more than \(bytesMax) bytes")
        }
        guard mode & 0o002 == 0 else {
            throw Fault(
                description: "all users may write the \(kind) \(path) (mode \(octalMode)): run "
                    + "chmod 600 \(path)", isUnreadable: false)
        }
    }

    /// The warning about a file that is used although others may use it, too; nil if there is none.
    ///
    /// - Parameter isSecret: false if reading the file gives nothing away, as with digests of tokens.
    package func warning(isSecret: Bool = true) -> String? {
        guard mode & (isSecret ? 0o077 : 0o020) != 0 else { return nil }
        return
            "other users may \(isSecret && mode & 0o020 == 0 ? "read" : "write") the \(kind) \(path) "
            + "(mode \(octalMode)): run chmod 600 \(path)"
    }

    private var octalMode: String { String(mode, radix: 8) }
}

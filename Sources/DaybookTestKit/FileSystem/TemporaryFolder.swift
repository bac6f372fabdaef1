// Folders on the machine's disk, for tests and searches that need a real file system: for their owner only,
// and removed when they are no longer used.

import Foundation

/// A new, empty folder that is removed with the value.
///
/// Swift may release a local value after its last use, while paths in the folder are still used. A
/// function therefore says `defer { folder.remove() }` where it makes one.
package final class TemporaryFolder: Sendable {
    /// Where it is.
    package let url: URL
    /// Its path.
    package var path: String { url.path }

    /// Creates a folder.
    ///
    /// - Parameter parent: the folder in which it is created.
    package init(in parent: URL = FileManager.default.temporaryDirectory) throws {
        url = parent.appending(path: "daybook-\(UUID().uuidString)", directoryHint: .isDirectory)
        try FileManager.default.createDirectory(
            at: url, withIntermediateDirectories: false, attributes: [.posixPermissions: 0o700])
    }

    deinit { remove() }

    /// Removes the folder and all that is in it; a second call does nothing.
    package func remove() { try? FileManager.default.removeItem(at: url) }

    /// The URL of a file or folder in it, whether it exists or not.
    package func appending(_ name: String) -> URL { url.appending(path: name) }
}

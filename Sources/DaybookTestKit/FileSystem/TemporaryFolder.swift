// Folders on the machine's disk, for tests and searches that need a real file system. Only their owner can
// access them, and they are removed when they are no longer used.

import Foundation

/// A new, empty folder that is removed with the value.
///
/// Swift may release a local value after its last use, while paths in the folder are still used. A function
/// that makes a folder should therefore call `defer { folder.remove() }`.
package final class TemporaryFolder: Sendable {
    /// The folder's URL.
    package let url: URL
    /// The folder's path.
    package var path: String { url.path }

    /// Creates a folder.
    ///
    /// - Parameter parent: the folder that contains it.
    package init(in parent: URL = FileManager.default.temporaryDirectory) throws {
        url = parent.appending(path: "daybook-\(UUID().uuidString)", directoryHint: .isDirectory)
        try FileManager.default.createDirectory(
            at: url, withIntermediateDirectories: false, attributes: [.posixPermissions: 0o700])
    }

    deinit { remove() }

    /// Removes the folder with its content; a second call does nothing.
    package func remove() { try? FileManager.default.removeItem(at: url) }

    /// The URL of a file or folder in the folder, whether it exists or not.
    package func appending(_ name: String) -> URL { url.appending(path: name) }
}

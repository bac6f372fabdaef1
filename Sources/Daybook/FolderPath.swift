// Folder paths that can be compared, also through symbolic links.

import Foundation
import LogStorage

/// The path of a folder, with symbolic links resolved.
struct FolderPath {
    private let path: String

    init(_ path: String) {
        self.path = URL(filePath: path).standardizedFileURL.resolvingSymlinksInPath().path
    }

    /// Whether this folder equals the other, or is in it.
    func isInside(_ other: FolderPath) -> Bool { path.isPath(in: other.path) }

    /// Whether the folders are equal, or one is in the other.
    func overlaps(_ other: FolderPath) -> Bool { isInside(other) || other.isInside(self) }
}

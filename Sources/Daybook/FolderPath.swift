// Paths of folders that are compared, whatever links lead to them.

import Foundation

/// The path of a folder, with links resolved.
struct FolderPath {
    private let path: String

    init(_ path: String) {
        self.path = URL(filePath: path).standardizedFileURL.resolvingSymlinksInPath().path
    }

    /// Whether this folder is the other, or in it.
    func isInside(_ other: FolderPath) -> Bool { (path + "/").hasPrefix(other.path + "/") }

    /// Whether one of both folders is in the other, or they are one.
    func overlaps(_ other: FolderPath) -> Bool { isInside(other) || other.isInside(self) }
}

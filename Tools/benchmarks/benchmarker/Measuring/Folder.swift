// Temporary folders for races.

import Foundation

/// A temporary folder for a contender's turn.
struct Folder {
    let url: URL

    /// Creates a folder in another.
    init(in parent: URL) throws {
        url = parent.appending(path: UUID().uuidString)
        try FileManager.default.createDirectory(at: url, withIntermediateDirectories: true)
    }

    /// Removes the folder and its content.
    func remove() { try? FileManager.default.removeItem(at: url) }

    /// Sums the bytes of all files in a folder whose names have a suffix.
    static func bytes(_ folder: URL, ending suffix: String = "") throws -> Int {
        let manager = FileManager.default
        return try manager.subpathsOfDirectory(atPath: folder.path)
            .filter { $0.hasSuffix(suffix) }
            .reduce(0) { sum, path in
                let attributes = try manager.attributesOfItem(
                    atPath: folder.appending(path: path).path)
                let isFile = attributes[.type] as? FileAttributeType == .typeRegular
                return sum + (isFile ? attributes[.size] as? Int ?? 0 : 0)
            }
    }
}

// Folders that a race fills and that go with it.

import Foundation

/// A folder of its own for every contender's turn.
struct Folder {
    let url: URL

    /// Creates a folder in another.
    init(in parent: URL) throws {
        url = parent.appending(path: UUID().uuidString)
        try FileManager.default.createDirectory(at: url, withIntermediateDirectories: true)
    }

    /// Removes it with all that is in it.
    func remove() { try? FileManager.default.removeItem(at: url) }

    /// Bytes of all files whose name ends so.
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

/// Something went otherwise than a race needs it.
struct RaceFailure: Error, CustomStringConvertible {
    let description: String
    init(_ description: String) { self.description = description }
}

/// Runs a program to its end.
///
/// - Throws: `RaceFailure` where it says that something is wrong.
func run(_ program: String, _ arguments: String...) throws {
    let process = Process()
    process.executableURL = URL(filePath: "/usr/bin/env")
    process.arguments = [program] + arguments
    process.standardOutput = FileHandle.nullDevice
    try process.run()
    process.waitUntilExit()
    guard process.terminationStatus == 0 else {
        throw RaceFailure("\(program) ended with \(process.terminationStatus)")
    }
}

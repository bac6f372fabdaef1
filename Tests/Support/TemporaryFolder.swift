// Folders on the machine's disk, for tests that need a real file system: for their owner only, and
// gone with the test.

import Foundation

/// A new, empty folder that is removed with the value.
///
/// Swift may release a local value after its last use, while paths in the folder are still used. A
/// function therefore says `defer { folder.remove() }` where it makes one.
package final class TemporaryFolder: Sendable {
    /// A command that ended with an error.
    private struct CommandFailure: Error, CustomStringConvertible { let description: String }

    package let url: URL
    package var path: String { url.path }

    package init() throws {
        url = FileManager.default.temporaryDirectory.appending(
            path: "daybook-\(UUID().uuidString)", directoryHint: .isDirectory)
        try FileManager.default.createDirectory(
            at: url, withIntermediateDirectories: false, attributes: [.posixPermissions: 0o700])
    }

    deinit { remove() }

    /// Removes the folder and all that is in it; a second call does nothing.
    package func remove() { try? FileManager.default.removeItem(at: url) }

    /// The place of something in the folder, there or not.
    package func appending(_ name: String) -> URL { url.appending(path: name) }

    /// The path of a log in the folder.
    package var log: String { appending("log").path }

    /// The names in a folder of it, sorted.
    package func names(in name: String) throws -> [String] {
        try FileManager.default.contentsOfDirectory(atPath: appending(name).path).sorted()
    }

    /// Writes a file.
    package func file(_ name: String, content: String = "") throws -> URL {
        let file = appending(name)
        try Data(content.utf8).write(to: file)
        return file
    }

    /// The content of every file of the log, by its name.
    package func image() throws -> [String: Data] {
        var image: [String: Data] = [:]
        for name in try FileManager.default.subpathsOfDirectory(atPath: log) {
            image[name] = FileManager.default.contents(atPath: log + "/" + name)
        }
        return image
    }

    /// Runs a command of the system in the folder.
    package func run(_ arguments: String...) throws {
        let process = Process()
        process.executableURL = URL(filePath: "/usr/bin/env")
        process.arguments = arguments
        process.currentDirectoryURL = url
        try process.run()
        process.waitUntilExit()
        guard process.terminationStatus == 0 else {
            throw CommandFailure(
                description: "\(arguments) ends with \(process.terminationStatus)")
        }
    }
}

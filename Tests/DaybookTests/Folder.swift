// A folder on the real disk that goes with the test.

import Foundation

@testable import DaybookOffline

/// A temporary folder.
final class Folder {
    let url: URL

    init() throws {
        url = FileManager.default.temporaryDirectory.appending(
            path: "daybook-\(UUID().uuidString)", directoryHint: .isDirectory)
        try FileManager.default.createDirectory(at: url, withIntermediateDirectories: false)
    }

    deinit { try? FileManager.default.removeItem(at: url) }

    func path(_ name: String) -> URL { url.appending(path: name) }

    /// The names in a folder of it, sorted.
    func names(_ name: String) throws -> [String] {
        try FileManager.default.contentsOfDirectory(atPath: path(name).path).sorted()
    }

    /// Runs a command of the system in the folder.
    func run(_ arguments: String...) throws {
        let process = Process()
        process.executableURL = URL(filePath: "/usr/bin/env")
        process.arguments = arguments
        process.currentDirectoryURL = url
        try process.run()
        process.waitUntilExit()
        guard process.terminationStatus == 0 else {
            throw EventError(.refused, "\(arguments) exits with \(process.terminationStatus)")
        }
    }
}

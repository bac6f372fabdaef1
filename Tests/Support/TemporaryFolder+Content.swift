// Operations of tests on a temporary folder.

import DaybookTestKit
import Foundation

/// The error of a command that failed.
private struct CommandFailure: Error, CustomStringConvertible { let description: String }

extension TemporaryFolder {
    /// The path of a log in the folder.
    package var log: String { appending("log").path }

    /// The names in one of its folders, sorted.
    package func names(in name: String) throws -> [String] {
        try FileManager.default.contentsOfDirectory(atPath: appending(name).path).sorted()
    }

    /// Writes a file.
    package func file(_ name: String, content: String = "") throws -> URL {
        let file = appending(name)
        try Data(content.utf8).write(to: file)
        return file
    }

    /// The content of every file of the log, by name.
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
        try process.runAlone()
        process.waitUntilExit()
        guard process.terminationStatus == 0 else {
            throw CommandFailure(
                description: "\(arguments) ends with \(process.terminationStatus)")
        }
    }
}

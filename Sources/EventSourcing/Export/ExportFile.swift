// A file that appears under its name only when it is complete: written to a temporary file, synced, renamed.

import Foundation
import LogStorage

/// A file that an export writes.
package final class ExportFile {
    private let fileSystem = POSIXFileSystem()
    private let path: String
    /// The path under which the file is written.
    package let temporary: String
    private let replacement: Replacement
    private let file: any File
    private var buffer: [UInt8] = []
    private var writtenBytes = 0

    private static let bufferBytesMax = 256 * 1024

    /// The handling of an existing file.
    package enum Replacement: Sendable {
        /// Replaces it.
        case allowed
        /// Keeps it and throws; the text is the error's advice for allowing the replacement.
        case refused(String)
    }

    /// Creates the temporary file.
    ///
    /// - Parameters:
    ///   - replacement: the handling of an existing file.
    ///   - log: the folder of a log, in which no file may be created.
    /// - Throws: `LogError` (`io`) for a file that must not be created there.
    package init(_ path: String, _ replacement: Replacement, log: String) throws(LogError) {
        self.path = path
        self.replacement = replacement
        try Self.check(path, replacement)
        let folder = URL(filePath: path).deletingLastPathComponent()
        let (own, other) = (folder.resolvingSymlinksInPath().path + "/", Self.resolved(log) + "/")
        guard !own.hasPrefix(other) else {
            throw LogError(
                .io, path: path, "the path is in the log's folder. Choose another path")
        }
        let name = URL(filePath: path).lastPathComponent
        temporary = folder.appending(path: ".\(name).\(UUID().uuidString).part").path
        do { file = try fileSystem.open(temporary, .createNew) } catch {
            guard error.code == .notFound else { throw LogError(error) }
            throw LogError(
                .io, path: folder.path,
                "the folder does not exist. Create it, or choose another path")
        }
    }

    private static func resolved(_ path: String) -> String {
        URL(filePath: path, directoryHint: .isDirectory).resolvingSymlinksInPath().path
    }

    /// Checks that the file may be created. Checks the path itself, not the target of a link.
    private static func check(
        _ path: String, _ replacement: Replacement
    ) throws(LogError) {
        guard let attributes = try? FileManager.default.attributesOfItem(atPath: path) else {
            return
        }
        // A device or a pipe would be replaced, not written to.
        guard attributes[.type] as? FileAttributeType == .typeRegular else {
            throw LogError(
                .io, path: path, "the path exists and is not a regular file. Choose another path")
        }
        if case .refused(let advice) = replacement {
            throw LogError(.io, path: path, "the file exists. Choose another path, or \(advice)")
        }
    }

    /// True if there is a file that this one will replace.
    package var replacesFile: Bool { FileManager.default.fileExists(atPath: path) }

    /// Appends bytes. An error removes the temporary file.
    package func write(_ bytes: [UInt8]) throws(LogError) {
        buffer += bytes
        guard buffer.count >= Self.bufferBytesMax else { return }
        do { try flush() } catch {
            discard()
            throw error
        }
    }

    private func flush() throws(LogError) {
        try storage { () throws(FileError) in try file.write(buffer, at: writtenBytes) }
        writtenBytes += buffer.count
        buffer.removeAll(keepingCapacity: true)
    }

    /// Renames the temporary file to the final path. Durable on return. An error removes it.
    package func finish() throws(LogError) {
        do {
            try flush()
            try storage { () throws(FileError) in try file.sync() }
            try Self.check(path, replacement)
            try storage { () throws(FileError) in try fileSystem.rename(temporary, to: path) }
        } catch {
            discard()
            throw error
        }
        let folder = URL(filePath: path).deletingLastPathComponent().path
        try storage { () throws(FileError) in try fileSystem.syncDirectory(folder) }
    }

    /// Removes the temporary file.
    package func discard() { try? fileSystem.remove(temporary) }
}

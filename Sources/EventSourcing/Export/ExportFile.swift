// A file that appears under its name when it is whole: written beside it, synced, renamed.

import Foundation
import LogStorage

/// A file that an export writes.
package final class ExportFile {
    private let fileSystem = POSIXFileSystem()
    private let path: String
    private let temporary: String
    private let replacement: Replacement
    private let file: any File
    private var buffer: [UInt8] = []
    private var writtenBytes = 0

    private static let bufferBytesMax = 256 * 1024

    /// What becomes of a file that is there already.
    package enum Replacement: Sendable {
        /// It is replaced.
        case allowed
        /// It is refused; with how to allow it.
        case refused(String)
    }

    /// Begins a file.
    ///
    /// - Parameters:
    ///   - replacement: what becomes of a file that is there already.
    ///   - log: the folder of a log, in which no such file belongs.
    /// - Throws: `LogError` (`io`) for a file that must not be made there.
    package init(_ path: String, _ replacement: Replacement, log: String) throws(LogError) {
        self.path = path
        self.replacement = replacement
        try Self.check(path, replacement)
        let folder = URL(filePath: path).deletingLastPathComponent()
        guard folder.resolvingSymlinksInPath().path != Self.resolved(log) else {
            throw LogError(
                .io, path: path, "the file must not lie in the log's own folder. Name another")
        }
        let name = URL(filePath: path).lastPathComponent
        temporary = folder.appending(path: ".\(name).\(UUID().uuidString).part").path
        do { file = try fileSystem.open(temporary, .createNew) } catch { throw LogError(error) }
    }

    private static func resolved(_ path: String) -> String {
        URL(filePath: path, directoryHint: .isDirectory).resolvingSymlinksInPath().path
    }

    /// May the file be made? Looks at the name itself, not at what a link leads to.
    private static func check(
        _ path: String, _ replacement: Replacement
    ) throws(LogError) {
        guard let found = try? FileManager.default.attributesOfItem(atPath: path) else { return }
        // A device or a pipe would be replaced, not written to.
        guard found[.type] as? FileAttributeType == .typeRegular else {
            throw LogError(.io, path: path, "there is something else than a file. Name another")
        }
        if case .refused(let advice) = replacement {
            throw LogError(.io, path: path, "the file exists. Name another, or \(advice)")
        }
    }

    /// Appends bytes.
    package func write(_ bytes: [UInt8]) throws(LogError) {
        buffer += bytes
        if buffer.count >= Self.bufferBytesMax { try flush() }
    }

    private func flush() throws(LogError) {
        try storage { () throws(FileError) in try file.write(buffer, at: writtenBytes) }
        writtenBytes += buffer.count
        buffer.removeAll(keepingCapacity: true)
    }

    /// Gives the file its name; durable on return.
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

    /// Removes what was written.
    package func discard() { try? fileSystem.remove(temporary) }
}

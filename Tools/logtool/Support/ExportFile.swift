// A file that appears under its name when it is whole: written beside it, synced, renamed.

import Daybook
import Foundation
import LogStorage

final class ExportFile {
    private let fileSystem = POSIXFileSystem()
    private let path: String
    private let temporary: String
    private let force: Bool
    private let file: any File
    private var buffer: [UInt8] = []
    private var writtenBytes = 0

    private static let bufferBytesMax = 256 * 1024

    /// Begins a file.
    ///
    /// - Parameters:
    ///   - force: whether a file that is there already is replaced.
    ///   - log: the folder of a log, in which no such file belongs.
    init(_ path: String, force: Bool, log: String) throws {
        self.path = path
        self.force = force
        try Self.check(path, force: force)
        let folder = URL(filePath: path).deletingLastPathComponent()
        guard folder.resolvingSymlinksInPath().path != Self.resolved(log) else {
            throw LogError(
                .io, path: path, "the file must not lie in the log's own folder. Name another")
        }
        let name = URL(filePath: path).lastPathComponent
        temporary = folder.appending(path: ".\(name).\(UUID().uuidString).part").path
        file = try fileSystem.open(temporary, .createNew)
    }

    private static func resolved(_ path: String) -> String {
        URL(filePath: path, directoryHint: .isDirectory).resolvingSymlinksInPath().path
    }

    /// May the file be made? Looks at the name itself, not at what a link leads to.
    private static func check(_ path: String, force: Bool) throws {
        guard let found = try? FileManager.default.attributesOfItem(atPath: path) else { return }
        // A device or a pipe would be replaced, not written to.
        guard found[.type] as? FileAttributeType == .typeRegular else {
            throw LogError(.io, path: path, "there is something else than a file. Name another")
        }
        guard force else {
            throw LogError(.io, path: path, "the file exists. Name another, or add --force")
        }
    }

    func write(_ bytes: [UInt8]) throws {
        buffer += bytes
        if buffer.count >= Self.bufferBytesMax { try flush() }
    }

    private func flush() throws {
        try file.write(buffer, at: writtenBytes)
        writtenBytes += buffer.count
        buffer.removeAll(keepingCapacity: true)
    }

    /// Gives the file its name; durable on return.
    func finish() throws {
        do {
            try flush()
            try file.sync()
            try Self.check(path, force: force)
            try fileSystem.rename(temporary, to: path)
        } catch {
            discard()
            throw error
        }
        try fileSystem.syncDirectory(URL(filePath: path).deletingLastPathComponent().path)
    }

    /// Removes what was written.
    func discard() { try? fileSystem.remove(temporary) }
}

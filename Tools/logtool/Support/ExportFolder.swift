// A folder that appears under its name when it is whole: written beside it, synced, renamed.

import DaybookOffline
import Foundation
import LogStorage

struct ExportFolder {
    private let fileSystem = POSIXFileSystem()
    private let path: String
    private let force: Bool
    /// Where it is written. Not there yet.
    let temporary: String
    private let old: String

    /// Begins a folder.
    ///
    /// - Parameters:
    ///   - force: whether a folder with content that is there already is replaced.
    ///   - log: the folder of a log, which must be neither in nor around it.
    init(_ path: String, force: Bool, log: String) throws {
        let url = URL(filePath: path, directoryHint: .isDirectory).standardizedFileURL
        self.path = Self.withoutSlash(url.path)
        self.force = force
        let parent = url.deletingLastPathComponent()
        let (own, other) = (Self.resolved(self.path), Self.resolved(log))
        guard !Self.isWithin(own, other), !Self.isWithin(other, own) else {
            throw LogError(
                .io, path: path, "the folder must not be in the log's folder or around it")
        }
        let name = "\(url.lastPathComponent).\(UUID().uuidString)"
        temporary = parent.appending(path: ".\(name).part").path
        old = parent.appending(path: ".\(name).old").path
        try check()
    }

    private static func withoutSlash(_ path: String) -> String {
        path.count > 1 && path.hasSuffix("/") ? String(path.dropLast()) : path
    }

    private static func resolved(_ path: String) -> String {
        let url = URL(filePath: path, directoryHint: .isDirectory).standardizedFileURL
        // What does not exist yet is where its parent is.
        let parent = url.deletingLastPathComponent().resolvingSymlinksInPath()
        return withoutSlash(
            FileManager.default.fileExists(atPath: url.path)
                ? url.resolvingSymlinksInPath().path
                : parent.appending(path: url.lastPathComponent).path)
    }

    private static func isWithin(_ path: String, _ folder: String) -> Bool {
        path == folder || path.hasPrefix(folder == "/" ? folder : folder + "/")
    }

    /// May the folder be made? Looks at the name itself, not at what a link leads to.
    ///
    /// - Returns: whether there is something to be replaced.
    @discardableResult
    func check() throws -> Bool {
        guard let found = try? FileManager.default.attributesOfItem(atPath: path) else {
            return false
        }
        guard found[.type] as? FileAttributeType == .typeDirectory else {
            throw LogError(.io, path: path, "there is something else than a folder. Name another")
        }
        let entries = try fileSystem.list(path)
        guard !entries.isEmpty else { return false }
        guard force else {
            throw LogError(
                .io, path: path, "the folder is not empty. Name another, or add --force")
        }
        // What was not written by an export is not for it to delete.
        if let fault = try ContentLayout.fault(of: path, fileSystem) {
            throw LogError(.io, path: path, "the folder \(fault). Name another")
        }
        return true
    }

    /// Gives the folder its name; durable on return.
    ///
    /// - Returns: what was to be done yet and has failed, in words.
    func finish() throws -> String? {
        let parent = URL(filePath: path).deletingLastPathComponent().path
        let isReplacing = try check()
        if isReplacing {
            try fileSystem.rename(path, to: old)
            do { try fileSystem.rename(temporary, to: path) } catch {
                try? fileSystem.rename(old, to: path)
                throw error
            }
        } else {
            try fileSystem.rename(temporary, to: path)
        }
        try fileSystem.syncDirectory(parent)
        guard isReplacing else { return nil }
        do {
            try FileManager.default.removeItem(atPath: old)
            return nil
        } catch {
            return "the folder was replaced, but the old one, now \(old), could not be removed: "
                + error.localizedDescription
        }
    }

    /// Removes what was written.
    func discard() { try? FileManager.default.removeItem(atPath: temporary) }
}

// A folder that appears under its name when it is complete: written beside it, synced, renamed.

import DaybookOffline
import Foundation
import LogStorage

struct ExportFolder {
    private let fileSystem = POSIXFileSystem()
    private let path: String
    private let force: Bool
    /// The path under which the folder is written. Does not exist yet.
    let temporary: String
    private let old: String

    /// Checks the path; creates nothing.
    ///
    /// - Parameters:
    ///   - force: whether an existing folder with content is replaced.
    ///   - log: the log's folder, which must be neither inside nor around the new folder.
    init(_ path: String, force: Bool, log: String) throws {
        guard ProgramArguments.workingFolderIsUTF8 || [path, log].allSatisfy({ $0.hasPrefix("/") })
        else {
            Message.error(
                "the path of the working folder is not UTF-8; give absolute paths, or change the folder"
            )
            throw Exit.usage
        }
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
        // A path that does not exist yet is resolved by its parent.
        let parent = url.deletingLastPathComponent().resolvingSymlinksInPath()
        return withoutSlash(
            FileManager.default.fileExists(atPath: url.path)
                ? url.resolvingSymlinksInPath().path
                : parent.appending(path: url.lastPathComponent).path)
    }

    private static func isWithin(_ path: String, _ folder: String) -> Bool {
        path == folder || path.isPath(in: folder)
    }

    /// Checks that the folder may be created or replaced. Does not follow a symbolic link.
    ///
    /// - Returns: whether there is a folder with content to replace.
    @discardableResult
    func check() throws -> Bool {
        guard let attributes = try? FileManager.default.attributesOfItem(atPath: path) else {
            return false
        }
        guard attributes[.type] as? FileAttributeType == .typeDirectory else {
            throw LogError(.io, path: path, "exists and is not a folder; choose another path")
        }
        let entries = try fileSystem.list(path)
        guard !entries.isEmpty else { return false }
        guard force else {
            throw LogError(
                .io, path: path, "the folder is not empty; choose another path, or add --force")
        }
        // Replaces only a folder that an export has written.
        if let fault = try ContentLayout.fault(of: path, fileSystem) {
            throw LogError(.io, path: path, "the folder \(fault); choose another path")
        }
        return true
    }

    /// Renames the folder to its path; durable on return.
    ///
    /// - Returns: a message if the old folder could not be removed, else nil.
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

    /// Removes the temporary folder.
    func discard() { try? FileManager.default.removeItem(atPath: temporary) }
}

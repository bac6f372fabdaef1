// Secrets in one file, encrypted with a key of the app, for systems without a keychain. SealedFile has the
// bytes; LogStorage's FileSystem has the system calls, so that tests can simulate the disk.
// Spec/operations/secrets.md, SEC-8 to SEC-11.

import EventSourcing
import Foundation
import LogStorage
import Replay

/// A file of secrets, encrypted as a whole with AES-GCM.
///
/// The app provides the key: from a file of the administrator, a TPM, a pass phrase. The key and the file
/// together give the secrets. Each change writes a new file; a power failure at any moment leaves the old or
/// the new content. Any number of stores and processes may use one file.
public actor SealedFileSecretStore: SecretStore {
    private let path: String
    private let folder: String
    private let sealed: SealedFile
    private let fileSystem: any FileSystem

    /// The number of attempts to get the lock, and the time between two.
    private static let attempts = 100
    private static let pause = Duration.milliseconds(10)

    /// Creates the store for a file, which need not exist yet; its folder must. Nothing is opened.
    ///
    /// - Parameters:
    ///   - file: the file. The store also creates `<file>.lock` and, while it writes a change,
    ///     `<file>.new`.
    ///   - key: 32 random bytes.
    ///   - fileSystem: the file system of the file.
    /// - Throws: `SecretStoreError`: `badKey`; `unsafePlace` for a URL that is not a file on this device.
    public init(
        file: URL, key: [UInt8], fileSystem: any FileSystem = POSIXFileSystem()
    ) throws(SecretStoreError) {
        let path: String
        do throws(EventError) { path = try file.localPath() } catch {
            throw SecretStoreError(.unsafePlace, location: file.absoluteString, error.detail)
        }
        self.path = path
        folder = Self.parent(of: path)
        sealed = try SealedFile(key: key, location: path)
        self.fileSystem = fileSystem
    }

    public func read(_ name: String) throws(SecretStoreError) -> [UInt8]? {
        try check(name)
        return try table()[name]
    }

    public func write(_ value: [UInt8], for name: String) async throws(SecretStoreError) {
        try check(name)
        try await change { $0[name] = value }
    }

    /// Deletes the value with a name. The old file's bytes may still be on the medium, encrypted.
    public func delete(_ name: String) async throws(SecretStoreError) {
        try check(name)
        try await change { $0[name] = nil }
    }

    /// Removes the file. Works without the right key, too.
    public func deleteAll() async throws(SecretStoreError) {
        let lock = try await lock()
        defer { withExtendedLifetime(lock) {} }
        var isRemoved = false
        do throws(FileError) {
            try removeIfThere(path + ".new")
            try removeIfThere(path)
            isRemoved = true
            try fileSystem.syncDirectory(folder)
        } catch {
            guard isRemoved else { throw failure(error) }
            throw indeterminate(error)
        }
    }

    private func check(_ name: String) throws(SecretStoreError) {
        guard 1...SecretTable.nameBytesMax ~= name.utf8.count else {
            throw SecretStoreError(
                .badName, location: path, "a name has 1 to \(SecretTable.nameBytesMax) bytes")
        }
    }

    // MARK: The file

    /// Reads the file. Needs no lock: a rename replaces the whole file atomically.
    private func table() throws(SecretStoreError) -> [String: [UInt8]] {
        let bytes: [UInt8]
        let permissions: UInt16?
        do throws(FileError) {
            let file = try fileSystem.open(path, .read)
            permissions = try file.permissions()
            // One byte more than the limit, so that a longer file is noticed without reading all of it.
            bytes = try file.read(at: 0, count: min(try file.size(), SealedFile.bytesMax + 1))
        } catch {
            if error.code == .notFound { return [:] }
            throw failure(error)
        }
        // Another user could put an older copy in its place, which the seal does not reveal.
        if let permissions, permissions & 0o077 != 0 {
            throw SecretStoreError(
                .unsafePlace, location: path,
                "other users may use the file (mode \(String(permissions, radix: 8))); run "
                    + "chmod 600 \(path)")
        }
        guard bytes.count <= SealedFile.bytesMax,
            let table = SecretTable.read(try sealed.open(bytes, location: path))
        else { throw SealedFile.damaged(path) }
        return table
    }

    private func change(
        _ body: (inout [String: [UInt8]]) -> Void
    ) async throws(SecretStoreError) {
        let lock = try await lock()
        defer { withExtendedLifetime(lock) {} }
        // No suspension point below, so no other call comes between the read and the write.
        let old = try table()
        var new = old
        body(&new)
        // Nothing to delete: no file is created.
        if new.isEmpty, old.isEmpty { return }
        try replace(with: try sealed.seal(SecretTable.bytes(new), location: path))
    }

    /// Replaces the file by one with these bytes.
    private func replace(with bytes: [UInt8]) throws(SecretStoreError) {
        let new = path + ".new"
        var isRenamed = false
        do throws(FileError) {
            // The lock is held, so an existing file is left from a crash.
            try removeIfThere(new)
            let file = try fileSystem.open(new, .createNew)
            try file.write(bytes, at: 0)
            try file.sync()
            try fileSystem.rename(new, to: path)
            isRenamed = true
            try fileSystem.syncDirectory(folder)
        } catch {
            guard isRenamed else {
                try? fileSystem.remove(new)
                throw failure(error)
            }
            throw indeterminate(error)
        }
    }

    /// Locks the file against other writers. The lock is released with the last reference to the result.
    private func lock() async throws(SecretStoreError) -> any File {
        for attempt in 1...Self.attempts {
            do throws(FileError) {
                let file = try fileSystem.open(path + ".lock", .createIfMissing)
                if try file.lock() { return file }
            } catch { throw failure(error) }
            // Cancellation is ignored: the change is made or refused as a whole.
            if attempt < Self.attempts { try? await Task.sleep(for: Self.pause) }
        }
        let holder = fileSystem.lockHolder(of: path + ".lock")?.text ?? "another process"
        throw SecretStoreError(.busy, location: path, "\(holder) writes it; try again")
    }

    private func removeIfThere(_ path: String) throws(FileError) {
        do throws(FileError) { try fileSystem.remove(path) } catch {
            guard error.code == .notFound else { throw error }
        }
    }

    private func indeterminate(_ error: FileError) -> SecretStoreError {
        SecretStoreError(
            .indeterminate, location: path,
            "\(error.operation): \(error.reason); the change was made but may not survive a power "
                + "failure; make it again")
    }

    private static func parent(of path: String) -> String {
        guard let slash = path.lastSlash else { return "." }
        return slash == path.startIndex ? "/" : String(path[..<slash])
    }

    private func failure(_ error: FileError) -> SecretStoreError {
        let code: SecretStoreError.Code =
            switch error.code {
            case .noSpace: .diskFull
            case .readOnly: .locked
            case .symbolicLink, .wrongKind: .unsafePlace
            case .notFound, .exists, .io: .io
            }
        return SecretStoreError(code, location: error.path, "\(error.operation): \(error.reason)")
    }
}

// Secrets in one file, sealed under a key of the app, for systems without a keychain. SealedFile
// has the bytes; LogStorage's FileSystem has the calls, so that a simulated disk can try this, too.
// Spec/operations/secrets.md, SEC-8 to SEC-11.

import EventSourcing
import Foundation
import LogStorage
import Replay

/// A file that holds secrets, sealed as a whole with AES-GCM.
///
/// Where the key comes from is the app's affair: a file of the administrator, a TPM, a pass phrase.
/// Whoever has the key and the file has the secrets. Each change writes the file anew; a cut at any
/// moment leaves the old content or the new. Any number of stores and processes may use one file.
public actor SealedFileSecretStore: SecretStore {
    private let path: String
    private let folder: String
    private let sealed: SealedFile
    private let fileSystem: any FileSystem

    /// How often somebody who finds another at work tries again, and after how long.
    private static let attempts = 100
    private static let pause = Duration.milliseconds(10)

    /// Names a file. It need not exist yet; its folder must. Nothing is opened.
    ///
    /// - Parameters:
    ///   - file: the file. Beside it there will be `<file>.lock` and, while a change is written,
    ///     `<file>.new`.
    ///   - key: 32 random bytes.
    ///   - fileSystem: where the file is.
    /// - Throws: `SecretStoreError`: `badKey`; `unsafePlace` for a URL that is not one of a file on
    ///   this device.
    public init(
        file: URL, key: [UInt8], fileSystem: any FileSystem = POSIXFileSystem()
    ) throws(SecretStoreError) {
        let path: String
        do throws(EventError) { path = try file.localPath() } catch {
            throw SecretStoreError(.unsafePlace, place: file.absoluteString, error.detail)
        }
        self.path = path
        folder = Self.parent(of: path)
        sealed = try SealedFile(key: key, place: path)
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

    /// Forgets the value under a name. What the file held may still be on the medium, sealed.
    public func delete(_ name: String) async throws(SecretStoreError) {
        try check(name)
        try await change { $0[name] = nil }
    }

    /// Removes the file, whatever it holds. Also the way out where the key is lost.
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
                .badName, place: path, "a name has 1 to \(SecretTable.nameBytesMax) bytes")
        }
    }

    // MARK: The file

    /// Reads needs no lock: a rename puts one whole file in the place of another.
    private func table() throws(SecretStoreError) -> [String: [UInt8]] {
        let bytes: [UInt8]
        do throws(FileError) {
            let file = try fileSystem.open(path, .read)
            // One more than there may be, so that a longer file is noticed and not read.
            bytes = try file.read(at: 0, count: min(try file.size(), SealedFile.bytesMax + 1))
        } catch {
            if error.code == .notFound { return [:] }
            throw failure(error)
        }
        guard bytes.count <= SealedFile.bytesMax,
            let table = SecretTable.read(try sealed.open(bytes, place: path))
        else { throw SealedFile.damaged(path) }
        return table
    }

    private func change(
        _ body: (inout [String: [UInt8]]) -> Void
    ) async throws(SecretStoreError) {
        let lock = try await lock()
        defer { withExtendedLifetime(lock) {} }
        // Nothing below waits, so nobody comes between reading and writing.
        let old = try table()
        var new = old
        body(&new)
        // Nothing to forget, and no file to begin with.
        if new.isEmpty, old.isEmpty { return }
        try replace(with: try sealed.seal(SecretTable.bytes(new), place: path))
    }

    /// Puts a new file in the place of the old one.
    private func replace(with bytes: [UInt8]) throws(SecretStoreError) {
        let new = path + ".new"
        var isRenamed = false
        do throws(FileError) {
            // Under the lock it can only be what a crash left.
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

    /// Takes the lock of all who change this file; held until the result is dropped.
    private func lock() async throws(SecretStoreError) -> any File {
        for attempt in 1...Self.attempts {
            do throws(FileError) {
                let file = try fileSystem.open(path + ".lock", .createIfMissing)
                if try file.lock() { return file }
            } catch { throw failure(error) }
            // Cancelled or not, the change is carried out or refused as a whole.
            if attempt < Self.attempts { try? await Task.sleep(for: Self.pause) }
        }
        throw SecretStoreError(.busy, place: path, "somebody else writes it. Try again")
    }

    private func removeIfThere(_ path: String) throws(FileError) {
        do throws(FileError) { try fileSystem.remove(path) } catch {
            guard error.code == .notFound else { throw error }
        }
    }

    private func indeterminate(_ error: FileError) -> SecretStoreError {
        SecretStoreError(
            .indeterminate, place: path,
            "\(error.operation): \(error.reason). It is done, and whether it outlives a power cut "
                + "is not known. Do it again")
    }

    private static func parent(of path: String) -> String {
        guard let slash = path.lastIndex(of: "/") else { return "." }
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
        return SecretStoreError(code, place: error.path, "\(error.operation): \(error.reason)")
    }
}

// Files next to the log, named by the hash of their content. A file is durable before the event that names
// it is recorded, and is deleted only when no view names it any more. Spec/model/files.md.

import Cryptography
import EventSourcing
import Foundation
import LogStorage

/// A view that names files. Files that it names are not collected.
public protocol FileReferring: Projection {
    /// Whether the state names a file. O(1).
    func refers(to file: FileID) -> Bool
}

/// The files of one log: images and other content that is too large for an event.
///
/// The log contains the events about a file; the store contains its bytes, in the folder `files` of the
/// log, under the SHA-256 of the content. Equal contents are one file. Only the owner can read and write
/// the files.
///
/// A file that no view names is deleted by `collect()`, unless it is retained. Suspending the log ends
/// all retentions, since another process may then collect: an app that retains files calls `close()` before
/// it suspends or closes the log, `reopen()` after it resumes, and `requireRetained(_:)` before it records
/// an event.
public actor FileStore {
    /// The folder of the files.
    public nonisolated let directory: String

    private let events: EventStore
    private nonisolated let fileSystem: any FileSystem
    private nonisolated let executor = StoreExecutor()
    /// A separate serial queue, so that waiting for the disk does not block a thread of the pool.
    public nonisolated var unownedExecutor: UnownedSerialExecutor {
        executor.asUnownedSerialExecutor()
    }
    /// The number of callers that retain each file, because no view may name it yet.
    private var retainCounts: [FileID: Int] = [:]
    /// The number of calls of `close()` without a `reopen()`.
    private var closeCount = 0
    private var isClosed: Bool { closeCount > 0 }
    private let collects: Bool
    /// Whether a view names a file that belongs to this store.
    private let isNamed: @Sendable (FileID) -> Bool
    /// Whether the folder is outside the log's folder, so that its parents may not exist.
    private let isOutsideLog: Bool
    /// Whether the folder was found or created.
    private var isPrepared = false

    /// The maximum bytes of one file.
    public static let fileBytesMax = 256 * 1_048_576
    private static let portionBytes = 1_048_576

    /// Creates the file store of a log. Reads nothing. A log has one file store: what one retains,
    /// another may collect.
    ///
    /// - Parameters:
    ///   - events: the log.
    ///   - folder: the folder of the files; nil for `files` in the log's folder.
    ///   - collects: false for a tool that does not know all views of an app, because it would delete the
    ///     files that only those views name.
    ///   - isNamed: whether a view names a file of this store; nil checks all views.
    public init(
        _ events: EventStore, in folder: String? = nil, collects: Bool = true,
        isNamed: (@Sendable (FileID) -> Bool)? = nil
    ) {
        self.events = events
        self.collects = collects
        self.isNamed =
            isNamed ?? { file in
                events.projections.contains {
                    ($0 as? any FileReferring)?.refers(to: file) ?? false
                }
            }
        fileSystem = events.environment.fileSystem
        isOutsideLog = folder != nil
        directory = folder ?? events.directory + "/" + LogDirectory.files
    }

    /// The path of a file, for an image view or a player. Checks neither that the file exists nor its
    /// content; `read(_:)` does.
    public nonisolated func path(of file: FileID) -> String { "\(directory)/\(file)" }

    // MARK: Storing

    /// Stores a content, and keeps it from being collected while `record` records its use. The file is
    /// durable before `record` is called.
    ///
    /// - Returns: what `record` returns.
    /// - Throws: `FileStoreError`: `tooLarge`, `noSpace`, `io`; `LogError`: `closed`, `suspended`;
    ///   what `record` throws.
    /// - Complexity: O(bytes).
    @discardableResult
    public func store<Result: Sendable>(
        _ content: [UInt8], record: @Sendable (FileID) async throws -> Result
    ) async throws -> Result {
        let file = try await storeRetained(content)
        defer { release([file]) }
        return try await record(file)
    }

    /// Stores a content, and keeps it from being collected while `record` records its use. The file is
    /// durable before `record` is called.
    ///
    /// - Returns: what `record` returns.
    /// - Throws: as `store(_:record:)` for bytes.
    @discardableResult
    public func store<Result: Sendable>(
        _ content: Data, record: @Sendable (FileID) async throws -> Result
    ) async throws -> Result {
        try await store([UInt8](content), record: record)
    }

    /// Stores a copy of a file, and keeps it from being collected while `record` records its use. The copy is
    /// durable before `record` is called. The file itself stays; a symbolic link is refused.
    ///
    /// - Returns: what `record` returns.
    /// - Throws: `EventError` (`refused`) for a URL that is not a file on this device; `FileStoreError`
    ///   (`missing`) if there is none; otherwise as `store(_:record:)` for bytes.
    /// - Complexity: O(bytes); memory for 1 MiB.
    @discardableResult
    public func store<Result: Sendable>(
        copying url: URL, record: @Sendable (FileID) async throws -> Result
    ) async throws -> Result {
        let file = try await storeRetained(copying: try url.localPath())
        defer { release([file]) }
        return try await record(file)
    }

    /// Stores a copy of a file and retains it: it is not collected until `release(_:)`. Durable on return.
    ///
    /// - Throws: as `store(copying:record:)`.
    private func storeRetained(copying path: String) async throws -> FileID {
        try await prepare()
        let id: FileID
        do {
            let source = try fileSystem.open(path, .read)
            let size = try source.size()
            guard size <= Self.fileBytesMax else { throw FileStoreError.tooLarge(path, size) }
            id = try write { (file) throws(FileError) in
                // The hash of the copy: another program may write to the source meanwhile.
                var hash = SHA256()
                try Self.forEachPortion(source, size) { (bytes, offset) throws(FileError) in
                    bytes.withUnsafeBytes { hash.update($0.bytes) }
                    try file.write(bytes, at: offset)
                }
                return FileID(hash: hash.finished())
            }
        } catch let error as FileError { throw FileStoreError(error) }
        retainCounts[id, default: 0] += 1
        return id
    }

    /// Stores a content and retains it: it is not collected until `release(_:)`. Durable on return.
    ///
    /// - Throws: as `store(_:record:)`.
    public func storeRetained(_ content: [UInt8]) async throws -> FileID {
        guard content.count <= Self.fileBytesMax else {
            throw FileStoreError.tooLarge(directory, content.count)
        }
        let id = FileID(of: content)
        try await prepare()
        if let failure = write(content, as: id) {
            guard failure.code == .missing else { throw failure }
            // The system may have deleted the cache folder.
            isPrepared = false
            try await prepare()
            if let failure = write(content, as: id) { throw failure }
        }
        retainCounts[id, default: 0] += 1
        return id
    }

    /// Moves a file into the store and retains it: it is not collected until `release(_:)`. Renames it
    /// on the same device, otherwise copies it. Durable on return.
    ///
    /// - Parameters:
    ///   - path: the file's path.
    ///   - expected: the id of the expected content; nil for any content.
    /// - Throws: `FileStoreError`: `damaged` if the content is not the expected one; then the file is not
    ///   moved. Otherwise as `store(_:record:)`.
    /// - Complexity: O(bytes); memory for 1 MiB.
    public func storeRetained(
        moving path: String, expecting expected: FileID? = nil
    ) async throws -> FileID {
        try await prepare()
        do {
            let source = try fileSystem.open(path, .read)
            let size = try source.size()
            guard size <= Self.fileBytesMax else { throw FileStoreError.tooLarge(path, size) }
            let id = try Self.hash(source, size)
            if let expected, expected != id { throw FileStoreError.damaged(path, expected) }
            try source.sync()
            do throws(FileError) {
                try fileSystem.rename(path, to: self.path(of: id))
                try fileSystem.syncDirectory(directory)
            } catch {
                // The file is probably on another device. Any other failure fails the copy as well.
                _ = try write { (file) throws(FileError) in
                    try Self.forEachPortion(source, size) { (bytes, offset) throws(FileError) in
                        try file.write(bytes, at: offset)
                    }
                    return id
                }
                // The store no longer needs the source, so a failure to remove it is ignored.
                try? fileSystem.remove(path)
            }
            retainCounts[id, default: 0] += 1
            return id
        } catch let error as FileError { throw FileStoreError(error) }
    }

    /// Releases retained files. They can be collected if no view names them.
    public func release(_ files: [FileID]) {
        for file in files {
            let count = (retainCounts[file] ?? 0) - 1
            retainCounts[file] = count > 0 ? count : nil
        }
    }

    /// Retains a stored file: it is not collected until `release(_:)`. Syncs the file and its name, because
    /// a kill may have come before the sync.
    ///
    /// - Returns: false if the file does not exist or does not have this content.
    public func retain(_ file: FileID) async -> Bool {
        guard (try? await prepare()) != nil, let content = try? open(file),
            (try? Self.hash(content.file, content.size)) == file, (try? content.file.sync()) != nil,
            (try? fileSystem.syncDirectory(directory)) != nil
        else { return false }
        retainCounts[file, default: 0] += 1
        return true
    }

    /// Checks that files are still retained, before an event that names them is recorded. While the store
    /// is suspended, another process may collect them.
    ///
    /// - Throws: `FileStoreError` (`missing`).
    public func requireRetained(_ files: some Sequence<FileID>) throws {
        for file in files where retainCounts[file] == nil {
            throw FileStoreError(
                .missing, path: path(of: file),
                "the store was suspended or closed after the file was stored; store it again")
        }
    }

    /// Checks that the log is open, and creates the folder if necessary.
    private func prepare() async throws {
        try await events.checkOpen()
        // The store may have been closed meanwhile, and its folder deleted.
        guard !isClosed else { throw LogError(.closed, path: directory, "the store was closed") }
        guard !isPrepared else { return }
        do throws(FileError) {
            if isOutsideLog {
                // The parent folder is also Daybook's own: it must not be a symbolic link.
                if let slash = directory.lastSlash {
                    try fileSystem.createDirectories(String(directory[..<slash]))
                }
                try fileSystem.createDirectories(directory)
            } else {
                // If the log's folder was deleted, it is not created again.
                try fileSystem.createDirectoryIfMissing(directory)
                try fileSystem.syncDirectory(events.directory)
            }
        } catch { throw FileStoreError(error) }
        isPrepared = true
    }

    /// Whether the folder does not exist: no file was stored yet, or the system has deleted it.
    public var isFolderMissing: Bool {
        do throws(FileError) { _ = try fileSystem.open(directory, .read) } catch {
            return error.code == .notFound
        }
        return false
    }

    /// The ids of all stored files; empty if the folder cannot be listed. O(files).
    public func ids() -> [FileID] {
        ((try? fileSystem.list(directory)) ?? []).compactMap(FileID.init)
    }

    /// Whether there is a file with this name. Does not check its content. O(1).
    public nonisolated func contains(_ file: FileID) -> Bool {
        (try? fileSystem.open(path(of: file), .read)) != nil
    }

    /// Writes a file.
    ///
    /// - Returns: the failure, or nil.
    private func write(_ content: [UInt8], as id: FileID) -> FileStoreError? {
        do throws(FileStoreError) {
            _ = try write { (file) throws(FileError) in
                try file.write(content, at: 0)
                return id
            }
            return nil
        } catch { return error }
    }

    /// Writes a file under a temporary name, syncs it and renames it.
    ///
    /// - Parameter body: writes the content, and returns its id.
    /// - Returns: that id.
    private func write(
        _ body: (any File) throws(FileError) -> FileID
    ) throws(FileStoreError) -> FileID {
        let temporary =
            directory + "/" + LogDirectory.unfinishedFilePrefix
            + String(events.environment.random(), radix: 16)
        do throws(FileError) {
            let file = try fileSystem.open(temporary, .createNew)
            let id = try body(file)
            try file.sync()
            try fileSystem.rename(temporary, to: path(of: id))
            try fileSystem.syncDirectory(directory)
            return id
        } catch {
            try? fileSystem.remove(temporary)
            throw FileStoreError(error)
        }
    }

    // MARK: Reading

    /// Reads the content of a file and checks its hash.
    ///
    /// - Throws: `FileStoreError`: `missing`; `damaged` if the content does not match the hash; `io`.
    /// - Complexity: O(bytes), also in memory.
    public func read(_ file: FileID) throws -> [UInt8] {
        let opened = try open(file)
        let content: [UInt8]
        do throws(FileError) {
            content = try opened.file.read(at: 0, count: opened.size)
        } catch { throw FileStoreError(error) }
        guard FileID(of: content) == file else {
            throw FileStoreError.damaged(path(of: file), file)
        }
        return content
    }

    /// Reads the content of a file as data. See `read(_:)`.
    ///
    /// - Throws: as `read(_:)`.
    public func data(of file: FileID) throws -> Data { Data(try read(file)) }

    /// Checks the hash of a file without reading the whole file into memory.
    ///
    /// - Throws: as `read(_:)`.
    /// - Complexity: O(bytes); memory for 1 MiB.
    public func verify(_ file: FileID) throws {
        let opened = try open(file)
        do {
            guard try Self.hash(opened.file, opened.size) == file else {
                throw FileStoreError.damaged(path(of: file), file)
            }
        } catch let error as FileError { throw FileStoreError(error) }
    }

    private func open(_ file: FileID) throws(FileStoreError) -> (file: any File, size: Int) {
        do throws(FileError) {
            let opened = try fileSystem.open(path(of: file), .read)
            let size = try opened.size()
            // No longer file is ever stored.
            guard size <= Self.fileBytesMax else {
                throw FileError(
                    .wrongKind, operation: "read", path: path(of: file),
                    reason: "the file has \(size) bytes, more than the maximum of a stored file")
            }
            return (opened, size)
        } catch { throw FileStoreError(error) }
    }

    private static func hash(_ file: any File, _ size: Int) throws(FileError) -> FileID {
        var hash = SHA256()
        try forEachPortion(file, size) { (bytes, _) throws(FileError) in
            bytes.withUnsafeBytes { hash.update($0.bytes) }
        }
        return FileID(hash: hash.finished())
    }

    private static func forEachPortion(
        _ file: any File, _ size: Int, _ body: ([UInt8], Int) throws(FileError) -> Void
    ) throws(FileError) {
        var offset = 0
        while offset < size {
            let bytes = try file.read(at: offset, count: min(portionBytes, size - offset))
            guard !bytes.isEmpty else { return }
            try body(bytes, offset)
            offset += bytes.count
        }
    }

    // MARK: Collecting

    /// Deletes the files that no view names and no caller retains: files of removed content, and files
    /// that a kill left without an event. The event that removed the last name of a file is made durable
    /// first. Entries with other names are not touched.
    ///
    /// Only the views that the store was opened with are asked. After a rollback of the app to a release
    /// without the view that names a file, the file is deleted.
    ///
    /// - Returns: the number and bytes of the deleted files.
    /// - Throws: `FileStoreError`; `LogError` as `EventStore.flush()`.
    /// - Complexity: O(files).
    @discardableResult
    public func collect() async throws -> FileCollection {
        guard collects, try await hasFolder() else { return FileCollection() }
        let names: [String]
        do throws(FileError) { names = try fileSystem.list(directory) } catch {
            guard error.code == .notFound else { throw FileStoreError(error) }
            isPrepared = false
            return FileCollection()
        }
        // A file is written without suspension on this actor, so every temporary file is a leftover.
        let leftovers = names.filter { $0.hasPrefix(LogDirectory.unfinishedFilePrefix) }
        return try await delete(names.compactMap(FileID.init), leftovers)
    }

    /// As `collect()`, but checks only the given files, which a view has named and may not name any more.
    ///
    /// - Throws: as `collect()`.
    /// - Complexity: O(files given).
    @discardableResult
    public func collect(only files: [FileID]) async throws -> FileCollection {
        guard collects, try await hasFolder() else { return FileCollection() }
        return try await delete(files, [])
    }

    /// Whether there is a folder to collect in. A cache folder that the system has deleted is not created
    /// again, so that all of its images are found lost together.
    private func hasFolder() async throws -> Bool {
        if isOutsideLog, isFolderMissing {
            isPrepared = false
            return false
        }
        try await prepare()
        return true
    }

    /// Deletes the given files that are not needed, and leftovers.
    private func delete(_ files: [FileID], _ leftovers: [String]) async throws -> FileCollection {
        let unnamed = files.filter { !isNeeded($0) }
        guard !unnamed.isEmpty || !leftovers.isEmpty else { return FileCollection() }
        // After a failed commit it is unknown which files the log names.
        try await events.requireFlushed()
        guard !isClosed else { throw LogError(.closed, path: directory, "the store was closed") }
        var collection = FileCollection()
        var failure: FileError?
        for name in leftovers { _ = remove(directory + "/" + name, &failure) }
        // A view may name one of them, or a caller retain it, by now.
        for file in unnamed where !isNeeded(file) {
            let size = try? fileSystem.open(path(of: file), .read).size()
            guard remove(path(of: file), &failure) else { continue }
            collection.files += 1
            collection.bytes += size ?? 0
        }
        do throws(FileError) { try fileSystem.syncDirectory(directory) } catch {
            if error.code == .notFound { isPrepared = false } else { failure = failure ?? error }
        }
        if let failure { throw FileStoreError(failure) }
        return collection
    }

    /// Removes a file. A folder or a missing file is no failure.
    ///
    /// - Parameter failure: set to the first failure.
    private func remove(_ path: String, _ failure: inout FileError?) -> Bool {
        do throws(FileError) {
            try fileSystem.remove(path)
            return true
        } catch {
            if error.code != .wrongKind, error.code != .notFound { failure = failure ?? error }
            return false
        }
    }

    private func isNeeded(_ file: FileID) -> Bool {
        retainCounts[file] != nil || isNamed(file)
    }

    /// Closes the store: running writes have ended on return, and no file is retained any more.
    public func close() {
        closeCount += 1
        retainCounts = [:]
    }

    /// Reverts one `close()`.
    public func reopen() { closeCount = max(0, closeCount - 1) }
}

/// The result of a collection.
public struct FileCollection: Hashable, Sendable {
    /// The number of deleted files.
    public var files = 0
    /// The sum of their bytes.
    public var bytes = 0

    /// Creates an empty result.
    public init() {}
}

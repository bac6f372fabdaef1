// Files beside the log, named by their content. A file is durable before the event that names it is
// recorded, and goes only when no view names it any more. Spec/model/files.md.

import Cryptography
import Daybook
import Foundation

/// A view that names files: what it names is not collected.
public protocol FileReferring: Projection {
    /// Whether the state names a file. O(1).
    func refers(to file: FileID) -> Bool
}

/// The files of one log: images and whatever else is too big for an event.
///
/// The log holds what is known about a file, the store its bytes, in the folder `files` of the log,
/// each under the SHA-256 of its content; equal contents are one file. Readable and writable by the
/// owner only. Where the app names a cache folder, the bytes of cached images lie in a store of their
/// own there (IMG-19).
public actor FileStore {
    /// Where the files are.
    public nonisolated let directory: String

    private let events: EventStore
    private nonisolated let fileSystem: any FileSystem
    private nonisolated let executor = StoreExecutor()
    /// A serial queue of its own: waiting for the disk holds no thread of the pool.
    public nonisolated var unownedExecutor: UnownedSerialExecutor {
        executor.asUnownedSerialExecutor()
    }
    /// Files that were stored and may not be named by a view yet, with how many hold them.
    private var holds: [FileID: Int] = [:]
    /// How often it was closed and not reopened.
    private var closings = 0
    private var isClosed: Bool { closings > 0 }
    private let collects: Bool
    /// Whether a view names a file that belongs to this store.
    private let isNamed: @Sendable (FileID) -> Bool
    /// Whether the folder lies outside the log's, so that the folders around it may be missing.
    private let isOutsideLog: Bool
    /// Whether the folder was there, and was one.
    private var isPrepared = false

    /// Most bytes of one file.
    public static let fileBytesMax = 256 * 1_048_576
    private static let portionBytes = 1_048_576
    /// How the name begins of a file that has not got its own yet.
    private static let unfinished = "new-"

    /// The files of a log.
    ///
    /// - Parameters:
    ///   - events: the log.
    ///   - folder: their folder; nil for `files` in the log's.
    ///   - collects: false for a tool that does not know all views of an app: what only those name
    ///     would be deleted.
    ///   - isNamed: whether a view names a file of this store; nil asks all views.
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

    /// Where a file is, for those who want a path: an image view, a player. Nobody has checked
    /// that it is there, nor its content; `read(_:)` does.
    public nonisolated func path(of file: FileID) -> String { "\(directory)/\(file)" }

    // MARK: Storing

    /// Stores a content, and keeps it from being collected while `record` says in the log what it
    /// is for. The file is durable before `record` is called.
    ///
    /// - Returns: what `record` returns.
    /// - Throws: `FileStoreError`: `tooLarge`, `noSpace`, `io`; `LogError`: `closed`, `suspended`;
    ///   what `record` throws.
    /// - Complexity: O(bytes).
    @discardableResult
    public func store<Result: Sendable>(
        _ content: [UInt8], record: @Sendable (FileID) async throws -> Result
    ) async throws -> Result {
        let file = try await add(content)
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

    /// Stores a content; until `release` it is not collected. Durable on return.
    ///
    /// - Throws: as `store(_:record:)`.
    func add(_ content: [UInt8]) async throws -> FileID {
        guard content.count <= Self.fileBytesMax else {
            throw FileStoreError.tooLarge(directory, content.count)
        }
        let id = FileID(of: content)
        try await prepare()
        if let failure = write(content, as: id) {
            guard failure.code == .missing else { throw failure }
            // The folder is gone: a system deletes caches.
            isPrepared = false
            try await prepare()
            if let failure = write(content, as: id) { throw failure }
        }
        holds[id, default: 0] += 1
        return id
    }

    /// Stores a file that lies somewhere else and removes it there; until `release` it is not
    /// collected. Renames where both are on one device, else copies. Durable on return.
    ///
    /// - Parameter expected: what its content must be, if the caller knows.
    /// - Throws: `FileStoreError`: `damaged` if the content is another than expected; then the file
    ///   stays where it was. As `store(_:record:)`.
    /// - Complexity: O(bytes); memory for 1 MiB.
    func add(moving path: String, expecting expected: FileID? = nil) async throws -> FileID {
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
                // Another device, most likely; if not, the copy will say so.
                try write(id) { (file) throws(FileError) in
                    try Self.portions(source, size) { (bytes, offset) throws(FileError) in
                        try file.write(bytes, at: offset)
                    }
                }
                // What cannot be removed is in nobody's way.
                try? fileSystem.remove(path)
            }
            holds[id, default: 0] += 1
            return id
        } catch let error as FileError { throw FileStoreError(error) }
    }

    /// Lets files be collected if no view names them.
    func release(_ files: [FileID]) {
        for file in files {
            let others = (holds[file] ?? 0) - 1
            holds[file] = others > 0 ? others : nil
        }
    }

    /// Keeps a file that is there from being collected until `release`. Its name is durable on
    /// return: a kill may have come before that was seen to.
    ///
    /// - Returns: whether it is there, with this content.
    func hold(_ file: FileID) async -> Bool {
        guard (try? await prepare()) != nil, let content = try? open(file),
            (try? Self.hash(content.file, content.size)) == file, (try? content.file.sync()) != nil,
            (try? fileSystem.syncDirectory(directory)) != nil
        else { return false }
        holds[file, default: 0] += 1
        return true
    }

    /// Checks that files are held still, before an event that names them is recorded: while a store
    /// is suspended, another process may have collected them.
    ///
    /// - Throws: `FileStoreError` (`missing`).
    func requireHeld(_ files: some Sequence<FileID>) throws {
        for file in files where holds[file] == nil {
            throw FileStoreError(
                .missing, path: path(of: file),
                "the store was suspended or closed after the file was stored. Store it again")
        }
    }

    /// Sees to it that there is a folder, and that the log may be written.
    private func prepare() async throws {
        try await events.checkOpen()
        // It may have been closed meanwhile, and its folder deleted.
        guard !isClosed else { throw LogError(.closed, path: directory, "the store was closed") }
        guard !isPrepared else { return }
        do throws(FileError) {
            if isOutsideLog {
                // The folder around it is Daybook's own, too: it may be no symbolic link.
                if let slash = directory.lastIndex(of: "/") {
                    try fileSystem.createDirectories(String(directory[..<slash]))
                }
                try fileSystem.createDirectories(directory)
            } else {
                // A log's folder that was deleted is not made again.
                try fileSystem.createDirectoryIfMissing(directory)
                try fileSystem.syncDirectory(events.directory)
            }
        } catch { throw FileStoreError(error) }
        isPrepared = true
    }

    /// Whether there is no folder: nothing was stored yet, or the system has deleted it.
    var isFolderMissing: Bool {
        do throws(FileError) { _ = try fileSystem.open(directory, .read) } catch {
            return error.code == .notFound
        }
        return false
    }

    /// The ids of all files that are there; none where the folder cannot be listed. O(files).
    func ids() -> [FileID] {
        ((try? fileSystem.list(directory)) ?? []).compactMap(FileID.init)
    }

    /// Whether there is a file with this name; its content is not looked at. O(1).
    nonisolated func contains(_ file: FileID) -> Bool {
        (try? fileSystem.open(path(of: file), .read)) != nil
    }

    /// Writes a file.
    ///
    /// - Returns: why that failed; nil if it did not.
    private func write(_ content: [UInt8], as id: FileID) -> FileStoreError? {
        do throws(FileStoreError) {
            try write(id) { (file) throws(FileError) in try file.write(content, at: 0) }
            return nil
        } catch { return error }
    }

    /// Writes a file under a name of its own and gives it the right one when it is durable.
    private func write(
        _ id: FileID, _ body: (any File) throws(FileError) -> Void
    ) throws(FileStoreError) {
        let temporary =
            directory + "/" + Self.unfinished
            + Hexadecimal.text(of: withUnsafeBytes(of: events.environment.random(), Array.init))
        do throws(FileError) {
            let file = try fileSystem.open(temporary, .createNew)
            try body(file)
            try file.sync()
            try fileSystem.rename(temporary, to: path(of: id))
            try fileSystem.syncDirectory(directory)
        } catch {
            try? fileSystem.remove(temporary)
            throw FileStoreError(error)
        }
    }

    // MARK: Reading

    /// The content of a file, checked.
    ///
    /// - Throws: `FileStoreError`: `missing`; `damaged` if the content is another than its name
    ///   says; `io`.
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

    /// Checks a file without holding it in memory.
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
            // Nothing longer was ever stored.
            guard size <= Self.fileBytesMax else {
                throw FileError(
                    .wrongKind, operation: "read", path: path(of: file),
                    reason: "it has \(size) bytes, more than any file that was stored")
            }
            return (opened, size)
        } catch { throw FileStoreError(error) }
    }

    private static func hash(_ file: any File, _ size: Int) throws(FileError) -> FileID {
        var hash = SHA256()
        try portions(file, size) { (bytes, _) throws(FileError) in
            bytes.withUnsafeBytes { hash.update($0.bytes) }
        }
        return FileID(hash: hash.finished())
    }

    private static func portions(
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

    /// Deletes what no view names: files whose city was removed, and what a kill left between a
    /// file and its event. What removed the last name of a file is made durable first. Files and
    /// folders with other names are left alone.
    ///
    /// - Returns: how much went.
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
        // What is unfinished now is left over: whoever stores does it in one go on this actor.
        let leftovers = names.filter { $0.hasPrefix(Self.unfinished) }
        return try await delete(names.compactMap(FileID.init), leftovers)
    }

    /// As `collect()`, but looks at some files only: at those of which the caller knows that a view
    /// has named them and may not name them any more.
    ///
    /// - Throws: as `collect()`.
    /// - Complexity: O(files given).
    @discardableResult
    func collect(only files: [FileID]) async throws -> FileCollection {
        guard collects, try await hasFolder() else { return FileCollection() }
        return try await delete(files, [])
    }

    /// Whether there is a folder to collect in. A cache folder that the system has deleted is not made
    /// anew, so that the images in it are found lost together.
    private func hasFolder() async throws -> Bool {
        if isOutsideLog, isFolderMissing {
            isPrepared = false
            return false
        }
        try await prepare()
        return true
    }

    /// Deletes those files that nobody needs, and leftovers.
    private func delete(_ files: [FileID], _ leftovers: [String]) async throws -> FileCollection {
        let unnamed = files.filter { !isNeeded($0) }
        guard !unnamed.isEmpty || !leftovers.isEmpty else { return FileCollection() }
        // After a failed commit nobody knows what the log names.
        try await events.settle()
        guard !isClosed else { throw LogError(.closed, path: directory, "the store was closed") }
        var collection = FileCollection()
        var failure: FileError?
        for name in leftovers { _ = remove(directory + "/" + name, &failure) }
        // Somebody may have named one of them meanwhile.
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

    /// Removes a file. What is none stays and stops nothing.
    ///
    /// - Parameter failure: the first failure of all.
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
        holds[file] != nil || isNamed(file)
    }

    /// Ends all writing: what is under way has ended on return. Nothing is held any more.
    func close() {
        closings += 1
        holds = [:]
    }

    /// Takes one `close()` back.
    func reopen() { closings -= 1 }
}

/// What a collection freed.
public struct FileCollection: Hashable, Sendable {
    /// How many files went.
    public var files = 0
    /// How many bytes they had.
    public var bytes = 0

    /// Nothing.
    public init() {}
}

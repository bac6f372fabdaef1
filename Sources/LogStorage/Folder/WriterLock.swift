// Ensures one writer at a time and one incarnation per device. The lock file's content is the incarnation
// and the file's own inode number. In a copied or restored folder the inode differs, so the log gets a
// new incarnation there. Spec/format/line.md, LINE-4.

import LogFormat

/// The acquired lock of a log, and the incarnation that its file names.
struct WriterLock {
    private let file: any File
    /// The writer id of new lines.
    private(set) var incarnation: UInt128

    private static let lengthMax = 128

    init(_ directory: String, _ environment: LogEnvironment) throws(LogError) {
        file = try Self.acquire(directory, environment.fileSystem)
        let identity = try storage { [file] () throws(FileError) in try file.identity() }
        let marker = try storage { [file] () throws(FileError) in
            try file.read(at: 0, count: Self.lengthMax)
        }
        if let known = Self.incarnation(in: marker, identity: identity) {
            incarnation = known
            return
        }
        incarnation = 0
        try mint(directory, environment)
    }

    /// Locks the lock file, creating it if it is missing.
    private static func acquire(
        _ directory: String, _ fileSystem: any FileSystem
    ) throws(LogError) -> any File {
        let path = directory + "/" + LogDirectory.lock
        let locked = try storage { () throws(FileError) -> (any File)? in
            let file = try fileSystem.open(path, .createIfMissing)
            guard try file.lock() else { return nil }
            // An erasure that ended meanwhile has removed the file's name. The lock of a file without a
            // name excludes no other writer.
            return try isNamed(file, path, fileSystem) ? file : nil
        }
        guard let locked else {
            throw LogError(
                .locked, path: directory,
                "another writer has the log open; close it there, or wait until it has finished")
        }
        return locked
    }

    /// True if `path` leads to this file.
    private static func isNamed(
        _ file: any File, _ path: String, _ fileSystem: any FileSystem
    ) throws(FileError) -> Bool {
        do throws(FileError) {
            let named = try fileSystem.open(path, .read)
            return try named.identity() == file.identity()
        } catch let error where error.code == .notFound { return false }
    }

    /// Checks that the folder is still the one that was locked.
    ///
    /// - Throws: `noSuchLog` if it was removed, renamed or replaced.
    func requireInPlace(_ directory: String, _ fileSystem: any FileSystem) throws(LogError) {
        let path = directory + "/" + LogDirectory.lock
        guard try storage({ () throws(FileError) in try Self.isNamed(file, path, fileSystem) })
        else {
            throw LogError(
                .noSuchLog, path: directory,
                "the log's folder was removed, renamed or replaced while the log was open")
        }
    }

    /// Stores a new, random incarnation; durable on return.
    mutating func mint(_ directory: String, _ environment: LogEnvironment) throws(LogError) {
        let minted = environment.randomUUID()
        try storage { [file] () throws(FileError) in
            let marker = Self.marker(minted, identity: try file.identity())
            try file.truncate(to: 0)
            try file.write(marker, at: 0)
            try file.sync()
            try environment.fileSystem.syncDirectory(directory)
        }
        incarnation = minted
    }

    /// `<uuid> <inode, 20 digits>` and a newline.
    private static func marker(_ incarnation: UInt128, identity: UInt64) -> [UInt8] {
        var bytes: [UInt8] = []
        LineText.append(uuid: incarnation, to: &bytes)
        bytes.append(UInt8(ascii: " "))
        LineText.append(number: identity, to: &bytes)
        bytes.append(UInt8(ascii: "\n"))
        return bytes
    }

    private static func incarnation(in marker: [UInt8], identity: UInt64) -> UInt128? {
        guard
            let uuid = LineText.uuid(marker.span.bytes, at: 0, acceptUppercase: false),
            marker == Self.marker(uuid, identity: identity)
        else { return nil }
        return uuid
    }
}

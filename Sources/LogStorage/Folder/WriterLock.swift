// One writer at a time, and one incarnation a device: the lock file is both the lock and the
// device-local marker. Its content names the incarnation and the file's own inode, so a copied or
// restored folder does not recognise it and gets a new incarnation. Spec/format/line.md, LINE-4.

import LogFormat

/// The held lock of a log and the incarnation it vouches for.
struct WriterLock {
    private let file: any File
    /// Under which name this log writes.
    private(set) var incarnation: UInt128

    private static let lengthMax = 128

    init(_ directory: String, _ environment: LogEnvironment) throws(LogError) {
        file = try Self.take(directory, environment.fileSystem)
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

    private static func take(
        _ directory: String, _ fileSystem: any FileSystem
    ) throws(LogError) -> any File {
        let path = directory + "/" + LogDirectory.lock
        let locked = try storage { () throws(FileError) -> (any File)? in
            let file = try fileSystem.open(path, .createIfMissing)
            guard try file.lock() else { return nil }
            // An erasure that ended meanwhile has removed the name, and the lock of a file without
            // a name keeps nobody out.
            return try isNamed(file, path, fileSystem) ? file : nil
        }
        guard let locked else {
            throw LogError(
                .locked, path: directory,
                "another writer has the log open. Close it there, or wait until it has finished")
        }
        return locked
    }

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
    /// - Throws: `noSuchLog` where it was removed, renamed or replaced by another.
    func requireInPlace(_ directory: String, _ fileSystem: any FileSystem) throws(LogError) {
        let path = directory + "/" + LogDirectory.lock
        guard try storage({ () throws(FileError) in try Self.isNamed(file, path, fileSystem) })
        else {
            throw LogError(
                .noSuchLog, path: directory,
                "the log's folder was removed, renamed or replaced while the log was open")
        }
    }

    /// Writes under a new name from now on; durable on return.
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

// A file system that reports what is read: how far the reading of a log is, is best told by the bytes of its
// files, since the number of events in the last one is not known before.

/// A file system that reports every read.
package struct CountingFileSystem: ForwardingFileSystem {
    package let base: any FileSystem
    private let onRead: @Sendable (_ bytes: Int) throws(FileError) -> Void

    /// - Parameter onRead: called with the bytes of each read; what it throws, the read throws.
    package init(
        _ base: any FileSystem = POSIXFileSystem(),
        onRead: @escaping @Sendable (_ bytes: Int) throws(FileError) -> Void
    ) {
        self.base = base
        self.onRead = onRead
    }

    /// The bytes that reading a log takes; 0 where they cannot be told.
    ///
    /// - Parameter verifying: whether the digests of sealed segments are read as well.
    package static func bytes(
        of directory: String, in fileSystem: any FileSystem = POSIXFileSystem(),
        verifying: Bool = false
    ) -> Int {
        let outline = (try? LogReader(directory, fileSystem: fileSystem).outline()) ?? []
        return outline.reduce(0) { $0 + (verifying && $1.isSealed ? 2 : 1) * $1.bytes }
    }

    package func open(_ path: String, _ mode: OpenMode) throws(FileError) -> any File {
        CountingFile(try base.open(path, mode), onRead)
    }
}

private final class CountingFile: ForwardingFile {
    let file: any File
    private let onRead: @Sendable (_ bytes: Int) throws(FileError) -> Void

    init(_ file: any File, _ onRead: @escaping @Sendable (_ bytes: Int) throws(FileError) -> Void) {
        self.file = file
        self.onRead = onRead
    }

    func read(at offset: Int, count: Int) throws(FileError) -> [UInt8] {
        let bytes = try file.read(at: offset, count: count)
        try onRead(bytes.count)
        return bytes
    }
}

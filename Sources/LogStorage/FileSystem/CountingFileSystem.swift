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

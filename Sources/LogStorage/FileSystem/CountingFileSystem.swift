// A file system that reports every read. The progress of reading a log is measured in bytes of its files,
// since the number of events in the last segment is not known in advance.

/// A file system that reports every read.
package struct CountingFileSystem: ForwardingFileSystem {
    package let base: any FileSystem
    private let onRead: @Sendable (_ bytes: Int) throws(FileError) -> Void

    /// - Parameter onRead: called with the byte count of each read. The read rethrows its errors.
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

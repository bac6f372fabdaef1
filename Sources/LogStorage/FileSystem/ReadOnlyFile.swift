// Default implementations for files that are only read: those that show other bytes or another file than the one
// that was opened.

/// A file whose changing operations fail.
protocol ReadOnlyFile: File {}

extension ReadOnlyFile {
    private func error(_ operation: String) -> FileError {
        FileError(
            .io, operation: operation, path: "", reason: "the file was opened for reading only")
    }
    func write(_ bytes: [UInt8], at offset: Int) throws(FileError) { throw error("write") }
    func allocate(size: Int) throws(FileError) { throw error("grow") }
    func truncate(to size: Int) throws(FileError) { throw error("truncate") }
    func sync() throws(FileError) { throw error("sync") }
    func lock() throws(FileError) -> Bool { throw error("lock") }
}

// Default implementations for files that are only read: those that show other bytes or another file than the one
// that was opened.

/// A file whose changing operations fail.
package protocol ReadOnlyFile: File {}

extension ReadOnlyFile {
    private func error(_ operation: String) -> FileError {
        FileError(
            .io, operation: operation, path: "", reason: "the file was opened for reading only")
    }
    package func write(_ bytes: [UInt8], at offset: Int) throws(FileError) { throw error("write") }
    package func allocate(size: Int) throws(FileError) { throw error("grow") }
    package func truncate(to size: Int) throws(FileError) { throw error("truncate") }
    package func sync() throws(FileError) { throw error("sync") }
    package func lock() throws(FileError) -> Bool { throw error("lock") }
}

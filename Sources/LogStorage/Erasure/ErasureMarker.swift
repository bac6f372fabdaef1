// A file whose existence means that everything beside it counts as deleted. Marks the erasure of a log
// and the reset of everything that an app stores on a device. Spec/protocol/accounts.md, ACC-6;
// Spec/model/settings.md.

/// The marker of an erasure in a folder.
package struct ErasureMarker: Sendable {
    /// The folder.
    package let directory: String
    /// The marker's name in it.
    package let name: String
    private let fileSystem: any FileSystem

    package init(in directory: String, _ name: String, _ fileSystem: any FileSystem) {
        self.directory = directory
        self.name = name
        self.fileSystem = fileSystem
    }

    private var path: String { directory + "/" + name }

    /// True if the marker file exists.
    package var exists: Bool {
        get throws(LogError) {
            do throws(FileError) {
                return try fileSystem.list(directory).contains(name)
            } catch let error where error.code == .notFound || error.code == .wrongKind {
                return false
            } catch { throw LogError(error) }
        }
    }

    /// Begins the erasure by creating the marker; durable on return.
    ///
    /// - Throws: `LogError` with nothing erased; `indeterminate` if the marker may or may not be on the disk.
    package func begin() throws(LogError) {
        do throws(LogError) { try makeDurable() } catch {
            try rollBack(after: error)
            throw error
        }
    }

    /// Makes the marker durable, creating it if it is missing. A marker that exists may be in the page cache
    /// only.
    package func makeDurable() throws(LogError) {
        try storage { () throws(FileError) in
            let file = try fileSystem.open(path, .createIfMissing)
            try file.sync()
            try fileSystem.syncDirectory(directory)
        }
    }

    private func rollBack(after cause: LogError) throws(LogError) {
        do throws(LogError) { try remove() } catch {
            throw LogError(
                .indeterminate, path: directory,
                "\(cause.detail); it is not known whether the erasure has begun; open the log or "
                    + "reset again to find out")
        }
    }

    /// Ends the erasure by removing the marker; durable on return. No error if there is no marker.
    package func remove() throws(LogError) {
        do throws(FileError) {
            try fileSystem.remove(path)
            try fileSystem.syncDirectory(directory)
        } catch let error where error.code == .notFound {
            return
        } catch { throw LogError(error) }
    }
}

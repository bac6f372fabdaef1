// A file that says that what lies beside it is gone, whatever is still there. Used by LogErasure for a
// log, and for everything that an app keeps on a device. Spec/protocol/accounts.md, ACC-6; Spec/model/settings.md.

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

    /// True if there is a file of this name.
    package var isThere: Bool {
        get throws(LogError) {
            do throws(FileError) {
                return try fileSystem.list(directory).contains(name)
            } catch let error where error.code == .notFound || error.code == .wrongKind {
                return false
            } catch { throw LogError(error) }
        }
    }

    /// Decides that everything is gone; durable on return.
    ///
    /// - Throws: `LogError` with everything as it was; `indeterminate` if it is not known whether
    ///   it is gone.
    package func begin() throws(LogError) {
        do throws(LogError) { try makeDurable() } catch {
            try takeBack(error)
            throw error
        }
    }

    /// Sees to it that the marker outlives a power cut: one that is found may be in the page cache
    /// only.
    package func makeDurable() throws(LogError) {
        try storage { () throws(FileError) in
            let file = try fileSystem.open(path, .createIfMissing)
            try file.sync()
            try fileSystem.syncDirectory(directory)
        }
    }

    private func takeBack(_ cause: LogError) throws(LogError) {
        do throws(LogError) { try remove() } catch {
            throw LogError(
                .indeterminate, path: directory,
                "\(cause.detail). Whether everything is gone is not known; open it to find out")
        }
    }

    /// The erasure has ended; durable on return. No error where there is no marker.
    package func remove() throws(LogError) {
        do throws(FileError) {
            try fileSystem.remove(path)
            try fileSystem.syncDirectory(directory)
        } catch let error where error.code == .notFound {
            return
        } catch { throw LogError(error) }
    }
}

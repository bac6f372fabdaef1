// Verification with the types and views of the offline model.

import DaybookOffline
import EventSourcing
import LogStorage

extension Verification {
    /// Verifies a log of the offline model.
    init(
        of directory: String, _ fileSystem: any FileSystem, progress: (Int) -> Void
    ) throws {
        try self.init(
            of: directory, fileSystem, catalogue: OfflineModel.catalogue,
            views: OfflineModel.views + [Outbox.self], progress: progress)
    }
}

extension CountingFileSystem {
    /// Creates a file system that reports every read to a `Progress`.
    init(_ progress: Progress) { self.init { progress.add(bytes: $0) } }
}

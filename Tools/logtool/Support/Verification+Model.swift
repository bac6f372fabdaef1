// The tool knows the types and the views of the model.

import DaybookOffline
import EventSourcing
import LogStorage

extension Verification {
    /// Reads a log of the model.
    init(
        of directory: String, _ fileSystem: any FileSystem, progress: (Int) -> Void
    ) throws {
        try self.init(
            of: directory, fileSystem, catalogue: OfflineModel.catalogue,
            views: OfflineModel.views + [Outbox.self], progress: progress)
    }
}

extension CountingFileSystem {
    /// A file system that tells a `Progress` of every read.
    init(_ progress: Progress) { self.init { progress.add(bytes: $0) } }
}

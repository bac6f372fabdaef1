// Where a log is read: its folder, and the file system through which its files are opened.

import DaybookOffline
import LogFormat
import LogStorage

/// The folder of a log, as it is now or, through a `LogSnapshot`, as it was at one moment.
struct LogFolder: Sendable {
    let directory: String
    let fileSystem: any FileSystem

    init(_ directory: String, _ fileSystem: any FileSystem = POSIXFileSystem()) {
        (self.directory, self.fileSystem) = (directory, fileSystem)
    }

    var reader: LogReader { LogReader(directory, fileSystem: fileSystem) }

    /// The known event types, with the rules that the log has recorded. One small read.
    var catalogue: EventCatalogue {
        reader.adding(recordedRulesTo: OfflineModel.catalogue, fileSystem)
    }

    /// The names of the segments, in order.
    ///
    /// - Throws: `LogError`.
    func segments() throws(LogError) -> [String] {
        try LogDirectory.segments(of: directory, fileSystem)
    }

    /// A cursor for the lines after a position.
    func cursor(after position: Position = .zero) -> LogCursor {
        LogCursor(directory, after: position, fileSystem: fileSystem)
    }

    /// Opens a file of the folder for reading.
    func open(_ name: String) throws(FileError) -> any File {
        try fileSystem.open(directory + "/" + name, .read)
    }
}

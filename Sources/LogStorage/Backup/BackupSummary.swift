// The content of a backup. Spec/format/backup.md.

import LogFormat

/// The content of a backup.
public struct BackupSummary: Hashable, Sendable, CustomStringConvertible {
    /// The number of events, the store's own records included.
    public var events = 0
    /// The position of the last event; `.zero` if there is none.
    public var last = Position.zero
    /// The number of segments.
    public var segments = 0
    /// The number of contents that the log stores as files.
    public var files = 0
    /// The size of all files of the backup, in bytes.
    public var bytes = 0
    /// The bytes that were copied. The backup shares the others with the log's files.
    public var bytesCopied = 0

    init() {}

    /// Events, files and bytes in one line.
    public var description: String {
        "\(events.counted("event")), the last at position \(last), in "
            + "\(segments.counted("segment")); \(files.counted("file")); "
            + "\(bytes.counted("byte")), \(bytesCopied) of them copied"
    }
}

// A failure of the database. The HTTP side answers it with 503; a command, or a server that cannot
// start, ends with an exit code. Spec/protocol/sync-protocol.md, SYNC-41.

/// A failure of the database.
package struct StorageError: Error, Hashable, Sendable, CustomStringConvertible {
    /// The kind of failure.
    package enum Code: Sendable {
        /// The database belongs to another application or to a newer version of this server.
        case wrongDatabase
        /// There is no database at the path.
        case missing
        /// Reading or writing failed; the operation was not done.
        case failed
        /// The disk is full. Reading may still work.
        case noSpace
        /// The medium, or its permissions, allow only reading.
        case readOnly
    }

    /// The kind of failure.
    package var code: Code
    /// The message. Never contains any part of an event.
    package var detail: String

    package init(_ code: Code, _ detail: String) {
        self.code = code
        self.detail = detail
    }

    /// The detail text.
    package var description: String { detail }
}

// Why the database could not do its work. The HTTP side answers it with 503, the start of the
// server with an exit code. Spec/protocol/sync-protocol.md, SYNC-41.

/// A failure of the database.
package struct StorageError: Error, Hashable, Sendable, CustomStringConvertible {
    /// The kind of failure.
    package enum Code: Sendable {
        /// The file belongs to something else, or to a newer version of this server.
        case wrongDatabase
        /// There is no database at the path.
        case missing
        /// Reading or writing failed; what was asked for did not happen.
        case failed
        /// There is no room to write. Reading may go on.
        case noRoom
    }

    /// The kind of failure.
    package var code: Code
    /// What went wrong. Never holds any part of an event.
    package var detail: String

    package init(_ code: Code, _ detail: String) {
        self.code = code
        self.detail = detail
    }

    /// The detail text.
    package var description: String { detail }
}

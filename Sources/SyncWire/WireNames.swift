// The names of the sync protocol that its client and its server share: path, query, headers, media types.
// Spec/protocol/sync-protocol.md; Spec/protocol/push.md.

/// The path of batches, pages and streams.
package let eventsPath = "/v1/events"

/// The query of a page or of a stream.
package enum WireQuery {
    /// The cursor.
    package static let after = "after"
    /// The largest number of events.
    package static let limit = "limit"
    /// The source of all events.
    package static let source = "source"
}

/// Names of headers. `AccountHeader` has its own.
package enum WireHeader {
    /// The number of events after a page.
    package static let remaining = "Daybook-Remaining"
    /// The restore since a cursor; see `ServerRestore`.
    package static let restored = "Daybook-Restored"
    /// In a request: its events were accepted by another server, or by this one before a restore.
    package static let offered = "Daybook-Offered"
    /// The name of the server's database.
    package static let server = "Daybook-Server"
    /// The cursor after which a stream is resumed.
    package static let lastEventID = "Last-Event-ID"
}

/// Media types.
package enum WireType {
    /// A batch, and a page.
    package static let batch = "application/cloudevents-batch+json"
    /// A reply with verdicts or an error.
    package static let json = "application/json"
    /// A stream of events.
    package static let stream = "text/event-stream"
}

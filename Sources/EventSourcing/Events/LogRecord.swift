// The types of a log's own records: the server's answers, the position to which the server's events were
// read, requests to an app's API, retracted events. Spec/model/events.md, EVT-8 and EVT-14.

/// The records that only the store itself writes.
package enum LogRecord {
    /// The prefix of their types.
    package static let typePrefix = "daybook.sync."

    /// The rules of the records of this release. They check nothing: readers of the records do.
    static let rules = ["settled", "pulled", "requested", "discarded", "reinstated"].map { name in
        EventRule(type: typePrefix + name, action: nil) { _ in }
    }

    /// True if events of a type are such records. Compared byte by byte, as types are.
    package static func isType(_ type: String) -> Bool { type.utf8.starts(with: typePrefix.utf8) }

    /// Refuses the types of records: a record names positions, and in a record from another log these
    /// are positions of other events.
    ///
    /// - Throws: `EventError` (`refused`).
    static func refuse(_ type: String) throws(EventError) {
        guard isType(type) else { return }
        throw EventError(
            .refused,
            "\(type) is a record of the store's own: only syncing and commands on the outbox write "
                + "it; it cannot be appended or imported")
    }
}

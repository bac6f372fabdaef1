// The types of the records with which a log keeps its own books: what the server has answered, how
// far it was read, what was taken back. Spec/model/events.md, EVT-8 and EVT-14.

/// The records that only the store itself writes.
package enum LogRecord {
    /// What the types of all of them begin with.
    package static let typePrefix = "daybook.sync."

    /// The rules of the records of this release. The store checks its own records elsewhere.
    static let rules = ["settled", "pulled", "discarded", "reinstated"].map { name in
        EventRule(type: typePrefix + name, action: nil) { _ in }
    }

    /// Whether events of a type are such records. Compared byte by byte, as types are.
    package static func isType(_ type: String) -> Bool { type.utf8.starts(with: typePrefix.utf8) }

    /// Refuses drafts that would speak for the store: a record names positions, and those of a
    /// record that comes from elsewhere are other events here.
    ///
    /// - Throws: `EventError` (`refused`).
    static func refuse(_ type: String) throws(EventError) {
        guard isType(type) else { return }
        throw EventError(
            .refused,
            "\(type) is a record of the store's own: it is written by syncing and by decisions on "
                + "the outbox, and cannot be appended or imported")
    }
}

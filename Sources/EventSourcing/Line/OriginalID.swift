// The ids of events that another producer of CloudEvents has made, whose ids are no UUIDs.
// Spec/format/line.md, LINE-10.

import Cryptography
import Foundation
import LogFormat

/// The identity of a foreign event, from which its id in the log is derived.
enum OriginalID {
    /// The extensions in which an event keeps its original source and id.
    static let source = "originsource"
    static let id = "originid"

    /// True for an event whose id was derived.
    static func isDerived(_ draft: EventDraft) -> Bool {
        derivedID(source: draft.string(source) ?? "", id: draft.string(id) ?? "") == draft.id
    }

    /// The UUID of version 8 that belongs to a source and an id: the same in every import. O(bytes).
    static func derivedID(source: String, id: String) -> UUID {
        EventDraft.derivedID(from: "daybook:\(source)\u{0}\(id)")
    }
}

extension EventDraft {
    /// The id that belongs to a text: the same on every device and in every run, another one for another text.
    ///
    /// A UUID of version 8 with the first bits of the text's SHA-256. For events of an app's own types that come from
    /// records with names of their own: a record that is imported twice counts once. Begin the text with the
    /// name of its kind, such as `bank-transfer:`, so that records of different kinds have different ids.
    ///
    /// - Complexity: O(bytes).
    public static func derivedID(from text: String) -> UUID {
        let digest = SHA256.hash(Array(text.utf8))
        let number = digest.prefix(16).reduce(UInt128(0)) { $0 << 8 | UInt128($1) }
        let fixed: UInt128 = 0xF000_C000 << 48
        let version8: UInt128 = 0x8000_8000 << 48
        return UUID(integer: number & ~fixed | version8)
    }
}

// One thing that repair does, or would do, in words that a person can check. Spec/format/repair.md, REP-4.

import LogFormat

/// One step of a repair.
package struct RepairAction: Hashable, Sendable {
    /// What is done.
    package enum Verb: String, Sendable {
        /// A segment is written anew with everything that is intact.
        case rewrite
        /// An empty segment is written for positions that no file has any more.
        case create
        /// A file that is of no use is taken out of the log.
        case quarantine
    }

    package var verb: Verb
    /// The file, as named from the log's folder.
    package var name: String
    /// The positions that the written segment answers for.
    package var positions: ClosedRange<Position>?
    /// Those of them that no line has any more.
    package var lost: [ClosedRange<Position>] = []
    /// Whether that is all. Otherwise the last of them reach as far as any line can have, since
    /// nobody can tell how many there were.
    package var endIsKnown = true
    /// The size of the file that is set aside.
    package var bytes: Int?
    /// What is wrong.
    package var reason: String
    /// Where the file was put, once it was.
    package var quarantinedAs: String?
}

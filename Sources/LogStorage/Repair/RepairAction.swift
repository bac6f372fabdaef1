// One step of a repair, described so that a user can check it. Spec/format/repair.md, REP-4.

import LogFormat

/// One step of a repair.
package struct RepairAction: Hashable, Sendable {
    /// The kind of a step.
    package enum Verb: String, Sendable {
        /// Writes a segment again with its intact lines.
        case rewrite
        /// Writes an empty segment for lost positions.
        case create
        /// Moves a useless file out of the log.
        case quarantine
    }

    package var verb: Verb
    /// The file's path, relative to the log's folder.
    package var name: String
    /// The positions that the written segment covers.
    package var positions: ClosedRange<Position>?
    /// The covered positions whose lines are lost.
    package var lost: [ClosedRange<Position>] = []
    /// False if the number of lost lines is not known. Then `lost` extends to the last position that the
    /// file can have contained.
    package var endIsKnown = true
    /// The positions at which the old file also has lines of a second writer, which the new one lacks.
    package var secondWriter: [ClosedRange<Position>] = []
    /// The size of the quarantined file.
    package var bytes: Int?
    /// The description of the damage.
    package var reason: String
    /// The file whose damage has caused this step; nil for damage of its own.
    package var cause: String?
    /// The file's path in the quarantine, once it is there.
    package var quarantinedAs: String?
}

// Why the rows of a projection are computed beside the database. Spec/model/sql.md, SQL-4.

import Daybook

/// A reason for which the rows of a projection are computed from the log's first event, beside the database.
public enum RebuildReason: Hashable, Sendable, CustomStringConvertible {
    /// No event was applied yet, and the log ends after position 65,536. Meanwhile the tables are empty.
    case longLog
    /// The tables are of another version of the projection.
    case version(Int)
    /// Tables are missing.
    case missingTables
    /// The log was copied, or restored from a backup: from then on it may have other events.
    case copiedLog
    /// The rows include events that the log does not have: it was restored to an earlier state.
    case aheadOfLog(Position)
    /// An event that the rows include was retracted, or one that they leave out was reinstated.
    case retraction

    public var description: String {
        switch self {
        case .longLog: "the log is long, and the tables have no rows yet"
        case .version(let version): "the tables are of version \(version)"
        case .missingTables: "tables are missing"
        case .copiedLog: "the log was copied or restored since the rows were computed"
        case .aheadOfLog(let position):
            "the rows are computed through position \(position), where the log has no or another event"
        case .retraction: "an event that the rows include was retracted or reinstated"
        }
    }
}

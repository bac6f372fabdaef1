// What waits beside a log, and what its owner has absorbed. Spec/format/companions.md.

import LogFormat
import LogStorage

/// The events of a companion that the owner has not absorbed yet.
public struct CompanionBacklog: Hashable, Sendable {
    /// The number of events.
    public var events = 0
    /// The bytes of their lines.
    public var bytes = 0
}

/// A spool of a companion beside a log.
public struct CompanionSpool: Hashable, Sendable {
    /// What the spool is to the log.
    public enum State: Hashable, Sendable {
        /// Its events wait for the owner.
        case waiting
        /// It belongs to another log or account, and is never absorbed.
        case foreign
        /// The owner has absorbed what it could and has set the spool aside, with the reason.
        case aside(String)
        /// It cannot be read, with the reason.
        case unreadable(String)

        /// The state's name in the output of tools.
        package var name: String {
            switch self {
            case .waiting: "waiting"
            case .foreign: "foreign"
            case .aside: "aside"
            case .unreadable: "unreadable"
            }
        }

        /// The reason of the state, if it has one.
        package var reason: String? {
            switch self {
            case .waiting, .foreign: nil
            case .aside(let reason), .unreadable(let reason): reason
            }
        }
    }

    /// The folder's name in `LOG/companions`.
    public let name: String
    /// The companion's name.
    public let companion: String
    /// What the spool is to the log.
    public let state: State
    /// The events that can be read, and their bytes; nil if they were not counted, as in a report for a spool that does
    /// not wait: its size has no bound.
    public let backlog: CompanionBacklog?
}

/// The result of absorbing the spools of a log's companions.
public struct AbsorptionReport: Hashable, Sendable {
    /// The number of events that were recorded in the log.
    public var absorbed = 0
    /// The number of events that the log already had.
    public var known = 0
    /// The number of spools that were deleted.
    public var deleted = 0
    /// The number of files with damaged or unfinished writes that were moved to the log's quarantine.
    public var quarantined = 0
    /// The names of spools whose events are all absorbed, and which stay until another process releases their locks.
    public var busy: [String] = []
    /// The spools that stay: of other logs, set aside, or unreadable.
    public var left: [CompanionSpool] = []
    /// The events that the log refuses, each with the reason. Their spools are set aside.
    public var refused: [String] = []

    /// Creates an empty report.
    public init() {}
}

extension SpoolFolder {
    /// Which spools' events are counted.
    enum Counting {
        case all, waiting
    }

    /// The spool, with the number of its events if they are counted. O(bytes) then, else O(1).
    func describe(_ name: SpoolName, counting: Counting) -> CompanionSpool {
        let state: CompanionSpool.State =
            switch self.state(of: name) {
            case .own, .empty: .waiting
            case .foreign: .foreign
            case .aside(let reason): .aside(reason)
            case .unreadable(let reason): .unreadable(reason)
            }
        guard counting == .all || state == .waiting else {
            return CompanionSpool(
                name: name.folder, companion: name.companion, state: state, backlog: nil)
        }
        var backlog = CompanionBacklog()
        // Of any log: a foreign one is described as well.
        var cursor = reader(name)
        _ = try? cursor.poll { _, line in
            backlog.events += 1
            backlog.bytes += line.byteCount
            return true
        }
        return CompanionSpool(
            name: name.folder, companion: name.companion, state: state, backlog: backlog)
    }
}

extension CompanionSpool {
    /// The spools beside a log, in the order of their names. Takes no lock and changes nothing.
    ///
    /// - Throws: `LogError`: `noSuchLog`; `io` if `companions` is no folder.
    /// - Complexity: O(bytes of the spools).
    package static func all(
        of directory: String, environment: LogEnvironment = LogEnvironment()
    ) throws -> [CompanionSpool] {
        let main = try SpoolFolder.main(of: directory, environment.fileSystem)
        let folder = SpoolFolder(
            of: directory, main.logID, account: main.account, environment)
        return try folder.list().map { folder.describe($0, counting: .all) }
    }
}

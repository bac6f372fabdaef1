// A report on a log for a support mail: sizes, counts, times, damage and how it syncs, without what the events
// contain. Spec/operations/diagnostics.md.

import Cryptography
import EventSourcing
import Foundation
import LogFormat
import LogStorage
import Replay

/// A report on a log that an app can attach to a support mail.
///
/// ```swift
/// let report = try await store.diagnosticReport()
/// try report.json().write(to: attachment)
/// ```
///
/// It has no data of an event, no subject, no lane, no token, no path and no message of a server.
/// Spec/operations/diagnostics.md says what each member is.
public struct DiagnosticReport: Codable, Hashable, Sendable {
    /// The version of the report's form.
    public var reportVersion = 1
    /// The release of the library or tool that made it.
    public var release = DaybookVersion.text
    /// When the report was made, by the device's clock.
    public var madeAt: Date
    /// The operating system and the processor architecture.
    public var system: String
    /// The events; nil if they cannot be read to the end: then `damage` says where.
    public var log: Events?
    /// The files of the log's folder, by name. Those of its subfolders are counted.
    public var files: [File]
    /// Bytes that are free for the log; nil if unknown.
    public var freeBytes: Int?
    /// The actions that the server has not settled; nil if the events cannot be read.
    public var outbox: Unsettled?
    /// How the log syncs; nil if the events cannot be read.
    public var sync: Sync?
    /// The damaged places; empty for an intact log.
    public var damage: [Damage]
    /// The findings, each with advice.
    public var findings: [Finding]

    /// The events of a log.
    public struct Events: Codable, Hashable, Sendable {
        /// The log's id.
        public var id: UUID
        /// The first 16 hexadecimal digits of the SHA-256 of the account's name; nil for a log of no account.
        public var accountDigest: String?
        /// The number of events.
        public var events: Int
        /// The position of the first event; nil without events.
        public var firstPosition: UInt64?
        /// The last used position; 0 without any.
        public var lastPosition: UInt64
        /// The earliest time of an event; nil without events.
        public var oldest: Date?
        /// The latest time of an event.
        public var newest: Date?
        /// The number of segment files.
        public var segments: Int
        /// Bytes of the segment files.
        public var diskBytes: Int
        /// Bytes of the events' lines.
        public var lineBytes: Int
        /// Whether a store has the log open, or has left it without closing it.
        public var isOpen: Bool
        /// Bytes of an unfinished write, which the next opening sets aside.
        public var tornTailBytes: Int
        /// The stored states of views: position, or nil for an unusable file.
        public var checkpoints: [String: UInt64?]
        /// The number of events of each type that the app's release knows, or whose rule the log has recorded.
        public var types: [String: Int]
        /// The number of events of other types.
        public var otherTypes: Int
    }

    /// A file or a subfolder.
    public struct File: Codable, Hashable, Sendable {
        /// The name, if it is one of a log's files; otherwise `other`.
        public var name: String
        /// Its size in bytes; that of all files of a subfolder. Nil if it cannot be opened.
        public var bytes: Int?
        /// The number of a subfolder's files; nil for a file.
        public var count: Int?
        /// Its permissions as octal digits; nil if unknown.
        public var mode: String?
        /// When it was last written; nil if unknown.
        public var modified: Date?
    }

    /// The actions that the server has not settled.
    public struct Unsettled: Codable, Hashable, Sendable {
        /// The number of actions to be sent.
        public var pending: Int
        /// The number of parked actions.
        public var parked: Int
        /// The number of actions in conflict.
        public var inConflict: Int
        /// The number of own events of types that have no rule, here or in the log's records: they are not sent.
        public var withoutRule: Int
        /// The time of the oldest action to be sent; nil if there is none.
        public var oldest: Date?
        /// The number of actions by name.
        public var actions: [String: Int]
        /// The first 50 parked actions and actions in conflict.
        public var held: [Held]
    }

    /// A parked action, or one in conflict.
    public struct Held: Codable, Hashable, Sendable {
        /// The event's id.
        public var id: UUID
        /// The event's position.
        public var position: UInt64
        /// The action's name.
        public var action: String
        /// `FAILED` or `CONFLICT`.
        public var status: String
        /// Why it is parked: `rejected`, `exhausted` or `setAside`.
        public var parking: String?
        /// The number of verdicts `retry`.
        public var retryCount: Int
        /// The server's code, if it is one word of lower-case letters, digits and `_`.
        public var code: String?
        /// The time of the last attempt.
        public var lastAttempt: Date?
    }

    /// How a log syncs.
    public struct Sync: Codable, Hashable, Sendable {
        /// Whether events of other devices were read.
        public var hasCursor: Bool
        /// The time of the last record of an exchange or of a decision on a parked action or a conflict.
        public var lastExchange: Date?
        /// Server time − device time in milliseconds, as recorded.
        public var clockOffset: Int64
        /// The first 16 hexadecimal digits of the SHA-256 of the name of the server that the log has synced with; nil
        /// if it has none.
        public var serverDigest: String?
        /// The same of the account that the server has named; nil for none.
        public var accountDigest: String?
        /// Why the last run was refused because of the account: `wrong-account` or `account-needed`.
        public var accountRefusal: String?
        /// `SyncStatus.connection`; nil for a log without an open store in this process, as the members below.
        public var connection: String?
        /// `SyncStatus.behind`.
        public var behind: Int?
        /// `SyncStatus.nextAttempt`.
        public var nextAttempt: Date?
        /// The kind of `SyncStatus.obstacle`.
        public var obstacle: String?
    }

    /// A damaged place.
    public struct Damage: Codable, Hashable, Sendable {
        /// The file, relative to the log's folder.
        public var file: String
        /// The offset in the file; nil if it does not apply.
        public var offset: Int?
        /// The kind of damage, as `logtool verify` prints it.
        public var code: String
        /// The first affected position, if known.
        public var firstPosition: UInt64?
        /// The last affected position, if known.
        public var lastPosition: UInt64?
    }

    /// The report as indented JSON in UTF-8, members by name, times as in a line.
    public func json() throws -> Data {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
        encoder.dateEncodingStrategy = .custom { date, encoder in
            var container = encoder.singleValueContainer()
            try container.encode(Timestamp(date).description)
        }
        return try encoder.encode(self)
    }

    /// Reads a report.
    ///
    /// - Throws: `DecodingError`.
    public init(json: Data) throws {
        let decoder = JSONDecoder()
        decoder.dateDecodingStrategy = .custom { decoder in
            let container = try decoder.singleValueContainer()
            guard let time = Timestamp(try container.decode(String.self)) else {
                throw DecodingError.dataCorruptedError(
                    in: container, debugDescription: "not a time")
            }
            return time.date
        }
        self = try decoder.decode(DiagnosticReport.self, from: json)
    }
}

extension EventStore {
    /// Makes a report on the log for a support mail, without what the events contain. The store can record
    /// meanwhile.
    ///
    /// - Parameter progress: called with the part of the log that has been read, from 0 to 1, on another
    ///   thread.
    /// - Throws: `LogError`: `closed`, `suspended`, `io`, …; `CancellationError` if the task is cancelled.
    /// - Complexity: O(bytes of the log); memory for one frame, the outbox and the views.
    public nonisolated func diagnosticReport(
        progress: (@Sendable (_ part: Double) -> Void)? = nil
    ) async throws -> DiagnosticReport {
        try await flush()
        return try await DiagnosticReport.read(
            directory, catalogue, views: projections.map { type(of: $0) }, environment,
            syncStatus.current, progress)
    }
}

extension DiagnosticReport {
    /// Makes a report on the log in a folder, also on a damaged one.
    ///
    /// - Parameter status: how the open store syncs, if there is one.
    /// - Throws: `LogError` if there is no log, or if a file cannot be read; `CancellationError`.
    package static func read(
        _ directory: String, _ catalogue: EventCatalogue, views: [any Projection.Type],
        _ environment: LogEnvironment, _ status: SyncStatus?,
        _ progress: (@Sendable (_ part: Double) -> Void)?
    ) async throws -> DiagnosticReport {
        // The log is read twice: verified, then counted.
        try await LongRead.run(
            of: directory, environment.fileSystem, verifying: true, passes: 2, progress: progress
        ) { files in
            try DiagnosticReport(
                of: directory, files, catalogue: catalogue, views: views,
                now: environment.now(), status: status)
        }
    }

    /// Makes a report.
    ///
    /// - Parameters:
    ///   - fileSystem: the file system for reading the log.
    ///   - now: the device's time in milliseconds since 1970.
    ///   - status: how the open store syncs, if there is one.
    package init(
        of directory: String, _ fileSystem: any FileSystem, catalogue: EventCatalogue,
        views: [any Projection.Type], now: Int64, status: SyncStatus? = nil
    ) throws {
        madeAt = Timestamp(milliseconds: now).date
        let catalogue = LogReader(directory, fileSystem: fileSystem)
            .adding(recordedRulesTo: catalogue, fileSystem)
        system = "\(ProcessInfo.processInfo.operatingSystemVersionString) \(Self.architecture)"
        let verification = try Verification(
            of: directory, fileSystem, catalogue: catalogue, views: views
        ) { _ in }
        damage = verification.findings.filter { $0.cause == nil }.map(Damage.init)
        files = Self.files(of: directory, fileSystem)
        freeBytes = Self.freeBytes(directory)
        findings = []
        var outbox = Outbox()
        var (known, otherTypes) = ([String: Int](), 0)
        do {
            let statistics = try LogStatistics(of: directory, fileSystem, catalogue: catalogue) {
                outbox.fold($0)
                if $0.isKnownType || $0.hasRecordedRule {
                    known[$0.type, default: 0] += 1
                } else {
                    otherTypes += 1
                }
            }
            log = Events(statistics, types: known, otherTypes: otherTypes)
            self.outbox = Unsettled(outbox)
            sync = Sync(outbox, status)
        } catch let error as LogError where !damage.isEmpty && error.code == .corrupt {
            // `damage` says where.
        }
        // The store writes the file with at least one rule.
        let hasUnusableRules =
            files.contains { $0.name == LogDirectory.rules }
            && !LogReader(directory, fileSystem: fileSystem)
                .adding(recordedRulesTo: EventCatalogue(), fileSystem).hasOwnTypes
        findings = makeFindings(
            declaresTypes: catalogue.hasOwnTypes, hasUnusableRules: hasUnusableRules)
    }

    /// The first 16 hexadecimal digits of a name's SHA-256.
    fileprivate static func digest(_ name: String) -> String {
        SHA256.hash(Array(name.utf8)).prefix(8).hexadecimalDigits
    }

    private static var architecture: String {
        #if arch(arm64)
            "arm64"
        #elseif arch(x86_64)
            "x86_64"
        #else
            "other"
        #endif
    }

    private static func freeBytes(_ directory: String) -> Int? {
        let attributes = try? FileManager.default.attributesOfFileSystem(forPath: directory)
        return (attributes?[.systemFreeSize] as? NSNumber)?.intValue
    }

    private static func files(of directory: String, _ fileSystem: any FileSystem) -> [File] {
        let names = (try? fileSystem.list(directory)) ?? []
        return names.sorted().map { name in entry(name, of: directory, fileSystem) }
    }

    private static func entry(
        _ name: String, of directory: String, _ fileSystem: any FileSystem
    ) -> File {
        let path = directory + "/" + name
        let attributes = try? FileManager.default.attributesOfItem(atPath: path)
        var entry = File(name: LogDirectory.isOwn(name) ? name : otherName)
        if let mode = attributes?[.posixPermissions] as? NSNumber {
            entry.mode = String(mode.intValue & 0o7777, radix: 8)
        }
        entry.modified = attributes?[.modificationDate] as? Date
        let isLink = attributes?[.type] as? FileAttributeType == .typeSymbolicLink
        if !isLink, let content = try? fileSystem.list(path) {
            entry.count = content.count
            entry.bytes = content.reduce(0) { $0 + (size(path + "/" + $1, fileSystem) ?? 0) }
        } else {
            entry.bytes = size(path, fileSystem)
        }
        return entry
    }

    /// The name of a file that is not the log's.
    static let otherName = "other"

    private static func size(_ path: String, _ fileSystem: any FileSystem) -> Int? {
        try? fileSystem.open(path, .read).size()
    }
}

extension DiagnosticReport.Events {
    fileprivate init(_ log: LogStatistics, types: [String: Int], otherTypes: Int) {
        id = log.logID
        accountDigest = log.account.map(DiagnosticReport.digest)
        events = log.events
        firstPosition = log.positions?.lowerBound.rawValue
        lastPosition = log.last.rawValue
        oldest = log.times?.lowerBound.date
        newest = log.times?.upperBound.date
        segments = log.segments
        diskBytes = log.diskBytes
        lineBytes = log.lineBytes
        isOpen = log.isOpen
        tornTailBytes = log.tornTail?.byteCount ?? 0
        checkpoints = Dictionary(
            log.checkpoints.map { checkpoint in
                if case .states(let position, _) = checkpoint.content {
                    return (checkpoint.slot, position.rawValue)
                }
                return (checkpoint.slot, nil)
            }, uniquingKeysWith: { first, _ in first })
        self.types = types
        self.otherTypes = otherTypes
    }
}

extension DiagnosticReport.Unsettled {
    fileprivate static let heldMax = 50

    fileprivate init(_ outbox: Outbox) {
        parked = outbox.parkedCount
        inConflict = outbox.conflictCount
        withoutRule = outbox.withoutRule
        pending = outbox.count - parked - inConflict
        oldest = outbox.entries.first { $0.status == .pending }?.timestamp.date
        actions = [:]
        held = []
        for entry in outbox.entries {
            actions[entry.action, default: 0] += 1
            guard entry.status != .pending, held.count < Self.heldMax else { continue }
            held.append(
                DiagnosticReport.Held(
                    id: entry.id, position: entry.position.rawValue, action: entry.action,
                    status: entry.status.rawValue, parking: entry.parking?.rawValue,
                    retryCount: entry.retryCount, code: entry.code.flatMap(Self.word),
                    lastAttempt: entry.lastAttemptAt?.date))
        }
    }

    /// A server's code, if it cannot be a sentence.
    private static func word(_ code: String) -> String? {
        code.utf8.count <= 64
            && code.utf8.allSatisfy {
                (UInt8(ascii: "a")...UInt8(ascii: "z")).contains($0)
                    || (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0)
                    || $0 == UInt8(ascii: "_")
            } ? code : nil
    }
}

extension DiagnosticReport.Sync {
    fileprivate init(_ outbox: Outbox, _ status: SyncStatus?) {
        hasCursor = outbox.cursor != nil
        lastExchange = outbox.lastExchange?.date
        clockOffset = outbox.clockOffset
        serverDigest = outbox.peer.server.map(DiagnosticReport.digest)
        accountDigest = outbox.peer.account.map(DiagnosticReport.digest)
        accountRefusal = outbox.peer.refusal
        connection = status?.connection.rawValue
        behind = status?.behind
        nextAttempt = status?.nextAttempt?.date
        obstacle = status?.obstacle?.kind.rawValue
    }
}

extension DiagnosticReport.Damage {
    fileprivate init(_ finding: LogStorage.Finding) {
        file = finding.segment
        offset = finding.offset
        code = finding.code
        firstPosition = finding.positions?.lowerBound.rawValue
        lastPosition = finding.positions?.upperBound.rawValue
    }
}

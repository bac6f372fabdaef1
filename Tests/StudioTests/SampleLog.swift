// Logs on the disk whose lines a test chooses, and what a naive reader finds in them.

import DaybookOffline
import DaybookTestKit
import EventGenerators
import EventSourcing
import Foundation
import LogFormat
import LogStorage
import TestSupport
import Testing

@testable import Studio

/// A log in a temporary folder, open for writing.
final class SampleLog: Sendable {
    let folder: TemporaryFolder
    let followed: FollowedLog
    private let log: Log

    var directory: String { folder.log }

    /// Creates a log with events. Its frames are small, so that it has many.
    init(_ events: [Event] = [], commit: Int = 7) throws {
        folder = try TemporaryFolder()
        var environment = LogEnvironment()
        environment.sizes.framePlaintextBytes = 4_096
        log = try Log(at: folder.log, environment: environment)
        followed = FollowedLog(LogFolder(folder.log))
        try append(events, commit: commit)
    }

    /// Appends events, whose positions must follow, in commits of a few.
    func append(_ events: some Sequence<Event>, commit: Int = 7) throws {
        let lines = events.map(\.storedLine)
        for start in stride(from: 0, to: lines.count, by: commit) {
            let part = lines[start..<min(lines.count, start + commit)]
            try log.append(Array(part.joined()))
        }
    }

    func roll() throws { try log.roll() }

    func close() throws { try log.close() }

    func remove() { folder.remove() }

    /// The paths of the segments.
    func segments() throws -> [String] {
        try LogDirectory.segments(of: directory, POSIXFileSystem())
    }
}

extension Event {
    var storedPrefix: LinePrefix {
        isOwn
            ? LinePrefix(own: id.integer, source: source.integer, at: position)
            : LinePrefix(
                id: id.integer, source: source.integer, sequence: sequence, position: position)
    }

    /// The stored line with its newline.
    var storedLine: [UInt8] {
        var line: [UInt8] = []
        LineEncoder.append(content, storedPrefix, to: &line)
        return line
    }
}

extension [Event] {
    /// The events as a log stores them: with ids of version 4, also where a record names them.
    var stored: [Event] {
        var ids: [Substring: String] = [:]
        var taken: Set<UUID> = []
        return map { event in
            var content = event.content.inLineForm
            let (version, mask): (UInt128, UInt128) = (0x4000_8000 << 48, 0xF000_C000 << 48)
            content.id = UUID(integer: event.id.integer & ~mask | version)
            while !taken.insert(content.id).inserted {
                content.id = UUID(integer: content.id.integer &+ 1)
            }
            ids[event.id.text[...]] = content.id.text
            if event.isRecord, let json = content.json {
                let parts = String(decoding: json, as: UTF8.self)
                    .split(separator: "\"", omittingEmptySubsequences: false)
                    .map { ids[$0] ?? String($0) }
                content.data = .json([UInt8](parts.joined(separator: "\"").utf8))
            }
            var prefix = event.storedPrefix
            prefix.id = content.id.integer
            var line: [UInt8] = []
            LineEncoder.append(content, prefix, to: &line)
            return Event(
                prefix, content: content, catalogue: OfflineModel.catalogue,
                lineBytes: line.count - 1)
        }
    }
}

/// Histories of logs.
enum Histories {
    /// Random events of all types, the server's answers, and decisions on some events.
    static func random(_ choices: inout Choices, _ steps: ClosedRange<Int>) throws -> [Event] {
        var log = RandomLog()
        for _ in 0..<choices.int(in: steps) { try choices.group { try log.step(&$0) } }
        var history = log.history
        for _ in 0..<choices.int(in: 0...4) {
            let own = history.events.filter { $0.isOwn && !$0.isRecord }
            guard !own.isEmpty else { break }
            let event = choices.element(of: own)
            let targets = [EventTarget(position: event.position, id: event.id)]
            if choices.bool(oneIn: 3) {
                history.addOwn(
                    try EventDraft(EventsReinstated(by: history.incarnation, events: targets)))
            } else {
                history.addOwn(
                    try EventDraft(
                        EventsDiscarded(
                            by: history.incarnation, events: targets, reason: .discarded)))
            }
            history.addOwn(try choices.draft())
        }
        return history.events.stored
    }

    /// The same history in every run, with events of most types.
    static func rich() throws -> [Event] {
        var choices = Choices(seed: 11)
        return try random(&choices, 300...300)
    }

    /// The id of the event with a number in `statuses`.
    static func id(_ number: Int) -> UUID {
        UUID(integer: UInt128(0x4000_8000) << 48 | UInt128(number))
    }

    /// Events of every status; `expectedStatuses` has them in order.
    static func statuses(text: String = "Kaffe") throws -> [Event] {
        var history = EventHistory()
        func draft(_ payload: some EventPayload) throws -> EventDraft {
            let number = history.events.count + 1
            var draft = try EventDraft(payload, id: id(number))
            draft.time = Timestamp(milliseconds: 1_772_352_000_000 + Int64(number) * 1_000)
            return draft
        }
        func note(_ number: Int) -> NoteAdded {
            NoteAdded(noteId: "note-\(number)", cityId: "oslo", content: text, createdBy: "ada")
        }
        func edit(_ number: Int) -> NoteUpdated {
            NoteUpdated(noteId: "note-\(number)", content: "Opera", updatedBy: "ada")
        }
        history.addOwn(try draft(note(1)))
        history.addOwn(try draft(CitySaved(userId: "ada", cityId: "oslo")))
        history.addOwn(try draft(note(3)))
        history.addOwn(try draft(edit(3)))
        var change = try draft(edit(1))
        change.baseID = id(1)
        history.addOwn(change)
        history.addOwn(try draft(note(6)))
        history.addForeign(try draft(note(7)), source: UUID(integer: 11), sequence: 3)
        history.addOwn(try draft(SettingPut(key: "theme", value: "dark")))
        history.addOwn(
            EventDraft(
                id: id(9), type: "com.example.visit", subject: "bergen",
                time: Timestamp(milliseconds: 1_772_352_009_000), data: .json(Array("{}".utf8))))
        var answer = SyncSettled(by: history.incarnation)
        answer.applied = [1...1]
        answer.entries = [
            SyncSettled.Entry(
                position: 3, id: id(3), outcome: .parked, retryCount: 0, code: "too_long"),
            SyncSettled.Entry(
                position: 5, id: id(5), outcome: .conflict, retryCount: 0, code: "stale_base"),
        ]
        history.addOwn(try draft(answer))
        history.addOwn(
            try draft(
                EventsDiscarded(
                    by: history.incarnation,
                    events: [EventTarget(position: Position(6), id: id(6))], reason: .discarded)))
        return history.events.stored
    }

    static let expectedStatuses: [EventStatus] = [
        .settled, .pending, .parked, .pending, .conflict, .retracted, .received, .local, .unknown,
        .record, .record,
    ]

    /// The same setting, set to one value after the other.
    static func settings(_ values: [Int]) throws -> [Event] {
        var history = EventHistory()
        for (number, value) in values.enumerated() {
            var draft = try EventDraft(
                SettingPut(key: "k\(number % 7)", value: value), id: id(number + 1))
            draft.time = Timestamp(milliseconds: Int64(number))
            history.addOwn(draft)
        }
        return history.events.stored
    }
}

// MARK: Naive readers

extension SampleLog {
    /// The statuses of the log's events, from a fold without an index.
    func naiveStatuses(_ events: [Event]) throws -> [EventStatus] {
        let outbox = try LogReader(directory).fold(
            catalogue: OfflineModel.catalogue, from: { Outbox() }
        ) { $0.fold($1) }.state
        let waiting = Dictionary(
            uniqueKeysWithValues: outbox.entries.map { ($0.position, $0.status) })
        var discarded = DiscardedEvents()
        for event in events { discarded.apply(event) }
        return events.map { event in
            switch waiting[event.position] {
            case .pending?: return .pending
            case .failed?: return .parked
            case .conflict?: return .conflict
            case nil: break
            }
            if discarded.contains(event.position) { return .retracted }
            if event.isRecord { return .record }
            if !event.isOwn { return .received }
            if event.action != nil { return .settled }
            return event.isKnownType ? .local : .unknown
        }
    }

    /// The rows of a view at a position, folded from the first event.
    static func naiveRows(
        of view: Int, at position: Position, in directory: String
    ) throws -> [ViewRow] {
        let catalogue = OfflineModel.catalogue
        let state = try LogReader(directory).fold(
            through: position, catalogue: catalogue,
            from: { OfflineModel.views[view].init() as any ListableView }
        ) { $0.fold(catalogue.newestForm(of: $1)) }.state
        var data: [UUID: [UInt8]] = [:]
        try LogReader(directory).forEachEvent(catalogue: catalogue) { event in
            data[event.id] = catalogue.newestForm(of: event).content.json
            return true
        }
        return state.rows().map { $0.filled { data[$0] } }
    }

    /// The positions of the events that changed a view's state, found by comparing each state with the next. A
    /// note or a download job that is deleted again counts as changed.
    static func naiveChanges(of view: Int, in directory: String) throws -> [Int] {
        /// The number of ignored events, with which the state begins, and the rest.
        func parts(_ state: any ListableView) throws -> (ArraySlice<UInt8>, ArraySlice<UInt8>) {
            let bytes = try #require(try state.encodedState())
            return (bytes.prefix(8), bytes.dropFirst(8))
        }
        let catalogue = OfflineModel.catalogue
        return try LogReader(directory).fold(
            catalogue: catalogue,
            from: { (OfflineModel.views[view].init() as any ListableView, [Int]()) }
        ) { fold, event in
            let before = try parts(fold.0)
            fold.0.fold(catalogue.newestForm(of: event))
            let after = try parts(fold.0)
            let isDeletion =
                fold.0 is NotesView && event.type == NoteDeleted.type
                || fold.0 is DownloadsView && event.type == DownloadRemoved.type
            if after.1 != before.1 || isDeletion && after.0 == before.0 {
                fold.1.append(Int(event.position.rawValue))
            }
        }.state.1
    }
}

// MARK: Reading as Studio does

extension FollowedLog {
    /// Reads the log to its end at once, as the threads do in the background.
    func readToEnd() throws {
        let (directory, folder) = (directory, folder)
        let through = try LogReader(directory).compactedThrough()
        try withState { state in
            var cursor = LogCursor(
                directory, after: Position(state.index.positions.last ?? 0))
            try cursor.poll { prefix, line in
                try state.index.append(prefix, line, in: directory)
                return true
            }
            state.isIndexed = true
            state.last = cursor.position
            state.fold.compactedThrough = through
            let records = state.index.positions(ofTypes: DiscardedEvents.recordTypes)
            try state.fold.readRecords(records, in: folder)
            try state.fold.advance(
                through: Position(state.index.positions.last ?? 0), in: folder
            )
            state.version += 1
            state.statusVersion += 1
        }
    }

    /// The statuses of all events, in order.
    var statuses: [EventStatus] {
        withState { state in (0..<state.index.count).map { state.status($0) } }
    }
}

extension API {
    /// The API of a log that has been read to its end.
    convenience init(reading directory: String) throws {
        let followed = FollowedLog(LogFolder(directory))
        try followed.readToEnd()
        self.init(followed, isWritable: false)
    }

    /// The reply to a GET request of an address after `/api/`, a refusal included.
    func reply(_ address: String) -> APIReply {
        let parts = address.split(separator: "?", maxSplits: 1, omittingEmptySubsequences: false)
        let path = parts[0].split(separator: "/").map(String.init)
        do {
            return try answer(path, Parameters(query: parts.count > 1 ? String(parts[1]) : ""))
        } catch { return APIReply(APIError(error)) }
    }

    /// The reply as JSON.
    func json(_ address: String) throws -> JSONValue { try reply(address).json() }

    /// The positions of the rows of a reply.
    func positions(_ address: String) throws -> [Int] {
        try json(address).column("rows", "position").compactMap(\.int)
    }
}

extension APIReply {
    /// The body, which must be exactly one JSON value.
    func json() throws -> JSONValue { try JSONValue(text: body) }

    var text: String { String(decoding: body, as: UTF8.self) }
}

/// JSON, in files that import another type of the name.
typealias JSON = JSONValue

extension JSONValue {
    /// Parses a text that is exactly one value.
    init(text: some Sequence<UInt8>) throws {
        let bytes = Array(text)
        self = try JSONValue(bytes.span.bytes)
    }

    subscript(name: String) -> JSONValue? {
        if case .object(let members) = self { members[name] } else { nil }
    }

    var list: [JSONValue] { if case .array(let elements) = self { elements } else { [] } }

    var int: Int? { if case .number(let number) = self { number.integerValue } else { nil } }

    /// A member of each object in a list.
    func column(_ list: String, _ name: String) -> [JSONValue] {
        (self[list]?.list ?? []).map { $0[name] ?? .null }
    }

    /// Numbers by name, in a list of objects with both.
    func counts(_ list: String) -> [[UInt8]: Int] {
        Dictionary(
            (self[list]?.list ?? []).map {
                (Array(($0["name"]?.stringValue ?? "").utf8), $0["events"]?.int ?? -1)
            }, uniquingKeysWith: +)
    }
}

// MARK: Logs that cannot be shown whole

extension TemporaryFolder {
    /// Changes a byte of a file of the log, by default the one in the middle.
    func damage(_ name: String) throws {
        let file = URL(filePath: log + "/" + name)
        var bytes = Array(try Data(contentsOf: file))
        bytes[bytes.count / 2] ^= 0xFF
        try Data(bytes).write(to: file)
    }

    /// A folder with a copy of the segments of a log in Spec/vectors.
    static func vector(_ name: String) throws -> TemporaryFolder {
        let folder = try TemporaryFolder()
        let source = Logtool.root.appending(path: "Spec/vectors/\(name)")
        try FileManager.default.createDirectory(
            atPath: folder.log, withIntermediateDirectories: false)
        for file in try FileManager.default.contentsOfDirectory(atPath: source.path)
        where file.hasSuffix(".lz4") {
            try FileManager.default.copyItem(
                atPath: source.appending(path: file).path, toPath: folder.log + "/" + file)
        }
        return folder
    }

    /// A folder whose log has a problem, by its code.
    static func withProblem(_ code: String) throws -> TemporaryFolder {
        switch code {
        case "newer": return try vector("newer-version")
        case "empty":
            let log = try SampleLog()
            try log.close()
            return log.folder
        case "damaged":
            let events = try Histories.rich()
            let log = try SampleLog(Array(events[..<150]))
            try log.roll()
            try log.append(events[150...])
            try log.close()
            try log.folder.damage(try log.segments()[0])
            return log.folder
        case "notALog":
            let folder = try TemporaryFolder()
            try FileManager.default.createDirectory(
                atPath: folder.log, withIntermediateDirectories: false)
            _ = try folder.file("log/letter.txt", content: "Kaffe")
            return folder
        default: return try TemporaryFolder()
        }
    }
}

extension FollowedLog {
    /// Follows the log in the background, and waits until it has been read to its end.
    func follow() async throws {
        start()
        try await eventually("the log is read to its end", is: true) { withState { $0.isFolded } }
    }
}

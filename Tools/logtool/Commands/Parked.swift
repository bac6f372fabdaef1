// logtool parked: what the server will not take, and what is to become of it.

import ArgumentParser
import DaybookOffline
import Foundation
import LogStorage

struct Parked: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Lists what the server will not take, and decides on it.",
        discussion: """
            Lists parked events and those in conflict; exit 1 if there are any. Each holds back what \
            was recorded after it in its lane. An event whose retries are used up is sent again by \
            itself, at nextAttemptAt; the others wait for a decision.

            --retry sends an event once more, as if it had never been tried. --discard does without \
            it: from then on it counts as never recorded. Where later events make no sense without \
            it, they are printed, and nothing is done unless --with-dependents is given. --resolve \
            decides a conflict: --keep mine makes the changes of its lane again, --keep theirs takes \
            them back. What was decided is on record: see logtool why.

            Example: logtool parked ./log --retry 6f1c2a9e-0b1d-4c55-9a27-1d0f4be7a001
            """)

    @Argument(help: "The log's folder.", completion: .directory)
    var directory: String
    @Option(
        help: .init(
            "Send the event with this id once more. May be given several times.", valueName: "id"))
    var retry: [String] = []
    @Flag(help: "Send all parked events once more; not those in conflict.")
    var retryAll = false
    @Option(
        help: .init(
            "Do without the event with this id. May be given several times.", valueName: "id"))
    var discard: [String] = []
    @Flag(help: "With --discard: also without the events that make no sense without it.")
    var withDependents = false
    @Option(
        help: .init(
            "Decide the conflict of the event with this id; needs --keep.", valueName: "id"))
    var resolve: String?
    @Option(
        help: .init("With --resolve: whose changes count, mine or theirs.", valueName: "side"))
    var keep: Side?
    @OptionGroup var output: OutputOptions

    func validate() throws {
        let decisions = [!retry.isEmpty, retryAll, !discard.isEmpty, resolve != nil]
        guard decisions.count(where: { $0 }) <= 1 else {
            throw ValidationError(
                "Give one of --retry, --retry-all, --discard and --resolve at a time.")
        }
        guard !withDependents || !discard.isEmpty else {
            throw ValidationError("--with-dependents goes with --discard.")
        }
        guard (keep != nil) == (resolve != nil) else {
            throw ValidationError("--resolve and --keep go together.")
        }
        for id in retry + discard + [resolve].compactMap({ $0 }) where UUID(uuidString: id) == nil {
            throw ValidationError("\(id) is not a UUID.")
        }
    }

    func run() async throws {
        try await Exit.mapping {
            if retry.isEmpty, !retryAll, discard.isEmpty, resolve == nil { return try list() }
            let store = try await ToolStore.open(directory)
            try await ToolStore.closing(store) { store in
                do { try await decide(store) } catch let error as DecisionError {
                    Message.error(error.description)
                    throw error.code == .notInOutbox ? Exit.noLog : Exit.badData
                }
            }
        }
    }

    // MARK: Listing

    private func list() throws {
        let progress = Progress("read", of: .bytes(LogReader(directory).bytesToRead()))
        let reader = LogReader(directory, fileSystem: CountingFileSystem(progress))
        let (outbox, outcome) = try reader.fold(
            catalogue: OfflineModel.catalogue, from: { Outbox() }
        ) { outbox, event in
            outbox.fold(event)
            progress.update(Int(clamping: event.position.rawValue))
        }
        let held = outbox.entries.filter { $0.status != .pending }
        var rows: [ViewRow] = []
        let behind = held.isEmpty ? [:] : Self.behind(outbox)
        if let first = held.first {
            var rest = held[...]
            try reader.forEachEvent(
                from: first.position, catalogue: OfflineModel.catalogue
            ) { event in
                guard let entry = rest.first, event.position == entry.position else { return true }
                rest.removeFirst()
                rows.append(
                    Self.row(entry, behind: behind[entry.id] ?? 0, data: event.content.json))
                return !rest.isEmpty
            }
        }
        progress.finish()
        if let tail = outcome.tornTail { Message.note(Inspect.words(tail)) }
        var writer = RowWriter(output.format)
        for row in rows { writer.write(row) }
        writer.finish()
        guard !held.isEmpty else { return Message.note("nothing is parked or in conflict") }
        throw Exit.findings
    }

    /// How many events of its lane wait behind each event.
    private static func behind(_ outbox: Outbox) -> [UUID: Int] {
        var behind: [UUID: Int] = [:]
        let lanes = Dictionary(grouping: outbox.entries) { EntityID($0.lane) }
        for lane in lanes.values {
            for (index, entry) in lane.enumerated() { behind[entry.id] = lane.count - 1 - index }
        }
        return behind
    }

    private static func row(_ entry: OutboxEntry, behind: Int, data: [UInt8]?) -> ViewRow {
        var row = ViewRow()
        row.add("id", entry.id.text)
        row.add("position", Int(clamping: entry.position.rawValue))
        row.add("actionType", entry.action)
        row.add("lane", entry.lane)
        row.add("syncStatus", entry.status.rawValue)
        row.add("retryCount", entry.retryCount)
        row.add("lastAttemptAt", entry.lastAttemptAt?.description)
        row.add("errorMessage", entry.errorMessage)
        row.add("nextAttemptAt", entry.nextAttemptAt?.description)
        row.add("behind", behind)
        row.add("actionData", raw: data)
        return row
    }

    // MARK: Deciding

    private func decide(_ store: EventStore) async throws {
        let commands = OutboxCommands(store)
        if retryAll {
            try await retry(
                commands.entries.filter { $0.status == .failed }.map(\.id), commands)
        } else if !retry.isEmpty {
            try await retry(Self.ids(retry), commands)
        } else if !discard.isEmpty {
            try await discard(Self.ids(discard), store, commands)
        } else if let id = resolve.flatMap(UUID.init(uuidString:)), let keep {
            try await resolve(id, keep, commands)
        }
    }

    /// Each id once, in the order in which they were given.
    private static func ids(_ texts: [String]) -> [UUID] {
        var seen: Set<UUID> = []
        return texts.compactMap(UUID.init(uuidString:)).filter { seen.insert($0).inserted }
    }

    private func retry(_ ids: [UUID], _ commands: OutboxCommands) async throws {
        // All or none: nobody else decides meanwhile.
        for id in ids {
            let entry = try Self.entry(id, commands)
            guard entry.status != .pending else { throw DecisionError(.notHeld, id) }
        }
        for id in ids { try await commands.retry(id) }
        write(ids, "retried")
        if ids.isEmpty { Message.note("nothing is parked") }
    }

    private func discard(
        _ ids: [UUID], _ store: EventStore, _ commands: OutboxCommands
    ) async throws {
        // The last one first: what depends on another is gone before it.
        let targets = try ids.map { try Self.entry($0, commands) }
            .sorted { $0.position > $1.position }
        for target in targets {
            let lane = EntityID(target.lane)
            let first = commands.entries.first { EntityID($0.lane) == lane }
            guard first?.status != .pending else { throw DecisionError(.notHeld, target.id) }
        }
        var dependents: [OutboxEntry] = []
        for target in targets where !withDependents {
            dependents += try commands.dependents(of: target.id).filter { !ids.contains($0.id) }
        }
        guard dependents.isEmpty else { return try await refuse(dependents, store) }
        var discarded: [UUID] = []
        for target in targets {
            discarded += try await commands.discard(
                target.id, withDependents: withDependents)
        }
        write(discarded, "discarded")
    }

    private func refuse(_ dependents: [OutboxEntry], _ store: EventStore) async throws {
        let behind = Self.behind(store.view(Outbox.self))
        var writer = RowWriter(output.format)
        var seen: Set<UUID> = []
        for entry in dependents.sorted(by: { $0.position < $1.position })
        where seen.insert(entry.id).inserted {
            let event = try await store.event(at: entry.position)
            writer.write(
                Self.row(entry, behind: behind[entry.id] ?? 0, data: event?.content.json))
        }
        writer.finish()
        Message.error(
            "nothing was discarded: \(seen.count) later events make no sense without it. Add "
                + "--with-dependents to do without them, too")
        throw Exit.findings
    }

    private func resolve(_ id: UUID, _ side: Side, _ commands: OutboxCommands) async throws {
        let lane = EntityID(try Self.entry(id, commands).lane)
        let before = commands.entries.filter { EntityID($0.lane) == lane }.map(\.id)
        try await commands.resolve(id, side.resolution)
        let after = commands.entries.filter { EntityID($0.lane) == lane }.map(\.id)
        write([(before, "superseded"), (after, "recorded")])
    }

    private static func entry(_ id: UUID, _ commands: OutboxCommands) throws -> OutboxEntry {
        guard let entry = commands.entries.first(where: { $0.id == id }) else {
            throw DecisionError(.notInOutbox, id)
        }
        return entry
    }

    private func write(_ ids: [UUID], _ done: String) { write([(ids, done)]) }

    private func write(_ groups: [(ids: [UUID], done: String)]) {
        var writer = RowWriter(output.format)
        for (ids, done) in groups {
            for id in ids {
                var row = ViewRow()
                row.add("id", id.text)
                row.add("done", done)
                writer.write(row)
            }
        }
        writer.finish()
    }
}

// logtool parked: lists parked events and conflicts, and decides on them.

import ArgumentParser
import DaybookOffline
import Foundation
import LogStorage
import Studio

struct Parked: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Lists parked events and conflicts, and decides on them.",
        discussion: """
            Lists parked events and those in conflict; exit 1 if there are any. Each blocks the \
            later events of its lane. An event whose retries are used up is sent again \
            automatically, at nextAttemptAt; the others wait for a decision.

            --retry sends an event again, with its retries reset. --discard retracts it: from then \
            on it counts as never recorded. If later events depend on it, they are printed, and \
            nothing is done unless --with-dependents is given. --resolve decides a conflict: \
            --keep mine records the changes of its lane again, --keep theirs retracts them. \
            Decisions are recorded: see logtool why.

            Example: logtool parked ./log --retry 6f1c2a9e-0b1d-4c55-9a27-1d0f4be7a001
            """)

    @Argument(help: "The log's folder.", completion: .directory)
    var directory: String
    @Option(
        help: .init(
            "Send the event with this id again. May be given several times.", valueName: "id"))
    var retry: [String] = []
    @Flag(help: "Send all parked events again; not those in conflict.")
    var retryAll = false
    @Option(
        help: .init(
            "Retract the event with this id. May be given several times.", valueName: "id"))
    var discard: [String] = []
    @Flag(help: "With --discard: also retract the events that depend on it.")
    var withDependents = false
    @Option(
        help: .init(
            "Decide the conflict of the event with this id; needs --keep.", valueName: "id"))
    var resolve: String?
    @Option(
        help: .init("With --resolve: whose changes win, mine or theirs.", valueName: "side"))
    var keep: Side?
    @OptionGroup var ask: AskOptions
    @OptionGroup var output: OutputOptions

    func validate() throws {
        let decisions = [!retry.isEmpty, retryAll, !discard.isEmpty, resolve != nil]
        guard decisions.count(where: { $0 }) <= 1 else {
            throw ValidationError(
                "Use only one of --retry, --retry-all, --discard and --resolve.")
        }
        guard !withDependents || !discard.isEmpty else {
            throw ValidationError("--with-dependents needs --discard.")
        }
        guard (keep != nil) == (resolve != nil) else {
            throw ValidationError("--resolve and --keep must be used together.")
        }
        for id in retry + discard + [resolve].compactMap({ $0 }) where UUID(uuidString: id) == nil {
            throw ValidationError("\(id) is not a UUID.")
        }
    }

    func run() async throws {
        try await Exit.mapping {
            if retry.isEmpty, !retryAll, discard.isEmpty, resolve == nil { return try list() }
            try await ask.opening(directory) {
                let store = try await ToolStore.open(directory)
                try await ToolStore.closing(store) { store in
                    do { try await decide(store) } catch let error as DecisionError {
                        Message.error(error.description)
                        throw error.code == .notInOutbox ? Exit.noLog : Exit.badData
                    }
                }
            }
        }
    }

    // MARK: Listing

    private func list() throws {
        let progress = Progress("read", of: .bytes(LogReader(directory).bytesToRead()))
        let reader = LogReader(directory, fileSystem: CountingFileSystem(progress))
        let (outbox, outcome) = try reader.fold(
            catalogue: reader.modelCatalogue, from: { Outbox() }
        ) { outbox, event in
            outbox.fold(event)
            progress.update(Int(clamping: event.position.rawValue))
        }
        let held = outbox.entries.filter { $0.status != .pending }
        var rows: [ViewRow] = []
        let behind = held.isEmpty ? [:] : Self.countsBehind(outbox)
        if let first = held.first {
            var remaining = held[...]
            try reader.forEachEvent(
                from: first.position, catalogue: OfflineModel.catalogue
            ) { event in
                guard let entry = remaining.first, event.position == entry.position else {
                    return true
                }
                remaining.removeFirst()
                rows.append(
                    Self.row(entry, behind: behind[entry.id] ?? 0, data: event.content.json))
                return !remaining.isEmpty
            }
        }
        progress.finish()
        if let tail = outcome.tornTail { Message.note(Message.text(for: tail)) }
        var writer = RowWriter(output.format)
        for row in rows { writer.write(row) }
        writer.finish()
        guard !held.isEmpty else { return Message.note("nothing is parked or in conflict") }
        throw Exit.findings
    }

    /// Counts for each event the later events of its lane.
    private static func countsBehind(_ outbox: Outbox) -> [UUID: Int] {
        var behind: [UUID: Int] = [:]
        let lanes = Dictionary(grouping: outbox.entries) { EntityID($0.lane) }
        for lane in lanes.values {
            for (index, entry) in lane.enumerated() { behind[entry.id] = lane.count - 1 - index }
        }
        return behind
    }

    private static func row(_ entry: OutboxEntry, behind: Int, data: [UInt8]?) -> ViewRow {
        var row = ViewRow()
        row.appendField("id", entry.id.text)
        row.appendField("position", Int(clamping: entry.position.rawValue))
        row.appendField("actionType", entry.action)
        row.appendField("lane", entry.lane)
        row.appendField("syncStatus", entry.status.rawValue)
        row.appendField("retryCount", entry.retryCount)
        row.appendField("lastAttemptAt", entry.lastAttemptAt?.description)
        row.appendField("errorMessage", entry.errorMessage)
        row.appendField("nextAttemptAt", entry.nextAttemptAt?.description)
        row.appendField("behind", behind)
        row.appendField("actionData", raw: data)
        return row
    }

    // MARK: Deciding

    private func decide(_ store: EventStore) async throws {
        let decisions = Decisions(store)
        if retryAll {
            let done = try await decisions.retryAll()
            write(done)
            if done.isEmpty { Message.note("nothing is parked") }
        } else if !retry.isEmpty {
            write(try await decisions.retry(Self.ids(retry)))
        } else if !discard.isEmpty {
            let ids = Self.ids(discard)
            let dependents = withDependents ? [] : try decisions.dependents(of: ids)
            guard dependents.isEmpty else { return try await refuse(dependents, store) }
            write(try await decisions.discard(ids, withDependents: withDependents))
        } else if let id = resolve.flatMap(UUID.init(uuidString:)), let keep {
            write(try await decisions.resolve(id, keep.resolution))
        }
    }

    /// Parses ids, without repetitions and in their order.
    private static func ids(_ texts: [String]) -> [UUID] {
        var known: Set<UUID> = []
        return texts.compactMap(UUID.init(uuidString:)).filter { known.insert($0).inserted }
    }

    private func refuse(_ dependents: [OutboxEntry], _ store: EventStore) async throws {
        let behind = Self.countsBehind(store.view(Outbox.self))
        var writer = RowWriter(output.format)
        for entry in dependents {
            let event = try await store.event(at: entry.position)
            writer.write(
                Self.row(entry, behind: behind[entry.id] ?? 0, data: event?.content.json))
        }
        writer.finish()
        Message.error(
            "nothing was discarded: \(dependents.count) later events depend on it; add "
                + "--with-dependents to retract them, too")
        throw Exit.findings
    }

    private func write(_ decisions: [Decisions.Done]) {
        Stdout.note(effect: "the decisions are recorded")
        var writer = RowWriter(output.format)
        for decision in decisions {
            var row = ViewRow()
            row.appendField("id", decision.id.text)
            row.appendField("done", decision.done)
            writer.write(row)
        }
        writer.finish()
    }
}

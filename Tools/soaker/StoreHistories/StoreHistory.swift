// A random sequence of commands on a store and its model. This file has the commands and draws them;
// StoreHistory+Run runs them, StoreHistory+Check checks the store after each. ModelTests and `Tools/soak
// store` run it.

import DaybookOffline
import DaybookTestKit
import Foundation

/// A store and its model, with the commands of a history.
package struct StoreHistory: StateMachine {
    /// The kinds of commands; a swarm omits some.
    package enum Operation: String, CaseIterable, Sendable {
        case append, relaxed, payload, batch, big, limit, hostile, resend, altered
        case transaction, abort, cities, notes, preferences, progress, refusedCommand
        case flush, clock, jump, checkpoint, compact, sync, silentSync
        case suspend, close, reopen, release, kill, powerCut, restore, erase
        case otherWriter, wrongOpening, fullDisk, past, readBack, follow, watch
    }

    /// A command with its parameters.
    package enum Command: Sendable {
        case append([ModelDraft], Durability)
        case payload(Fact, Durability)
        case transaction([ModelDraft], aborts: Bool)
        case feature(Fact)
        case setPreferences(Text, [String: Int])
        case flush, checkpoint, suspend, close, kill, erase, wrongOpening, readBack
        case setClock(Int64)
        case compact(dryRun: Bool)
        case sync([ScriptedVerdict], status: Int, ahead: Int64?)
        case resume(while: [ModelDraft])
        case open(knowsTrips: Bool, isCopy: Bool)
        case powerCut(seed: UInt64)
        case fullDisk([ModelDraft])
        case past(UInt64)
        case follow(after: UInt64)
        case watch(Text)
    }

    /// The state of the store.
    enum Phase { case open, suspended, closed }

    /// A subscription to a city's notes, with the last delivered value.
    struct Watch {
        var city: Text
        var notes: ViewChanges<NoteList>.AsyncIterator
        var last: NoteList?
    }

    let swarm: Swarm<Operation>
    let clock = VirtualClock()
    /// The seed of the stores' random numbers.
    let seed: UInt64
    var disk: Disk
    var folder = "/log"
    var model = StoreModel()
    var store: OfflineStore
    var phase = Phase.open
    var watch: Watch?
    var idCount: UInt64 = 0
    var copies = 0
    /// The counts by label, for `covering:`.
    package private(set) var counts: [String: Int] = [:]

    /// Draws the swarm, the disk and the seed, and opens an empty store.
    package init(_ choices: inout Choices) async throws {
        let frequent: [Operation] = [
            .append, .append, .append, .relaxed, .relaxed, .payload, .batch, .batch, .cities,
            .notes,
            .notes, .preferences, .progress, .transaction, .resend, .sync, .sync, .compact, .reopen,
            .kill,
        ]
        let all = Operation.allCases.filter { $0 != .append }
        swarm = Swarm([.append] + frequent + all, always: [.append], &choices)
        disk = Disk(isSimulated: choices.bool(oneIn: 3))
        seed = choices.next(below: 1 << 20)
        clock.milliseconds = model.now
        store = try await Self.open(disk, folder, clock, seed: seed, knowsTrips: true)
        model.source = store.events.incarnation
    }

    mutating func count(_ label: String, by number: Int = 1) { counts[label, default: 0] += number }

    // MARK: Drawing

    package mutating func next(_ choices: inout Choices) -> Command {
        let operation = swarm.next(&choices)
        let command = drawCommand(operation, &choices)
        if allows(command) {
            choices.count(operation.rawValue)
        }
        return command
    }

    private mutating func drawCommand(_ operation: Operation, _ choices: inout Choices) -> Command {
        switch operation {
        case .append: return .append([draft(&choices)], .durable)
        case .relaxed: return .append(choices.array(1...3) { draft(&$0) }, .relaxed)
        case .payload:
            return .payload(choices.fact(), choices.bool() ? .relaxed : .durable)
        case .batch: return .append(batch(&choices), choices.bool() ? .relaxed : .durable)
        case .big: return .append(choices.array(1...4) { bigDraft(&$0) }, .durable)
        case .limit: return .append([draftAtSizeLimit(&choices)], .durable)
        case .hostile:
            let valid = draft(&choices)
            let invalid = invalidDraft(&choices)
            return .append(choices.bool() ? [valid, invalid] : [invalid], .durable)
        case .resend, .altered:
            guard let draft = resentDraft(&choices, altered: operation == .altered) else {
                return .flush
            }
            return .append([draft], choices.bool() ? .relaxed : .durable)
        case .transaction: return .transaction(batch(&choices), aborts: false)
        case .abort: return .transaction(batch(&choices), aborts: true)
        case .cities:
            return .feature(
                .city(
                    user: choices.identifier(), city: choices.identifier(),
                    isSaved: !choices.bool()))
        case .notes: return .feature(noteCommand(&choices))
        case .preferences:
            return .setPreferences(choices.identifier(), choices.settings(valid: true))
        case .progress: return .feature(choices.progressFact())
        case .refusedCommand: return refusedCommand(&choices)
        case .flush: return .flush
        case .clock: return .setClock(Int64(choices.int(in: -400_000...1_000_000)))
        case .jump: return .setClock(Int64(choices.element(of: [91, -30, 1, -1])) * 86_400_000)
        case .checkpoint: return .checkpoint
        case .compact: return .compact(dryRun: choices.bool(oneIn: 5))
        case .sync:
            let verdicts = choices.array(0...6) {
                $0.element(of: [.applied, .applied] + ScriptedVerdict.allCases)
            }
            let ahead = choices.bool(oneIn: 5) ? Int64(choices.int(in: -9...9)) * 100_000 : nil
            return .sync(verdicts, status: 200, ahead: ahead)
        case .silentSync:
            return .sync([], status: choices.element(of: [503, 401, 404, 429]), ahead: nil)
        case .suspend: return .suspend
        case .close: return .close
        case .reopen: return .open(knowsTrips: model.knowsTrips, isCopy: false)
        case .release: return .open(knowsTrips: !model.knowsTrips, isCopy: false)
        case .restore: return .open(knowsTrips: model.knowsTrips, isCopy: true)
        case .kill: return .kill
        case .powerCut: return .powerCut(seed: choices.next(below: 1 << 20))
        case .erase: return .erase
        case .otherWriter: return .resume(while: choices.array(0...3) { draft(&$0) })
        case .wrongOpening: return .wrongOpening
        case .fullDisk: return .fullDisk(choices.array(1...3) { bigDraft(&$0) })
        case .past: return .past(choices.next(below: UInt64(model.lines.count + 3)))
        case .readBack: return .readBack
        case .follow: return .follow(after: choices.next(below: UInt64(model.lines.count + 2)))
        case .watch: return .watch(choices.identifier())
        }
    }

    /// Whether a command can be run in the current phase. Recording is allowed in every phase: a suspended or
    /// closed store must refuse it.
    package func allows(_ command: Command) -> Bool {
        switch command {
        case .resume: phase == .suspended
        case .open(_, let isCopy): !isCopy || disk.memory != nil && phase != .suspended
        case .powerCut: disk.simulated != nil
        case .fullDisk: disk.memory != nil && phase == .open
        case .kill: phase != .closed
        case .watch, .erase, .wrongOpening: phase == .open
        default: true
        }
    }
}

extension ModelDraft: CustomStringConvertible {
    package var description: String {
        var text = "\(type) \(draft.id.uuidString.suffix(4))"
        if fact != .other { text += " \(fact)" }
        if let subject = draft.subject { text += " subject \(Text(subject))" }
        if let lane = draft.lane { text += " lane \(Text(lane))" }
        if let time = draft.time { text += " at \(time.milliseconds)" }
        if case .json(let json) = draft.data {
            text += " \(Text(String(decoding: json, as: UTF8.self)))"
        }
        if let refusal { text += " refused: \(refusal)" }
        return text
    }
}

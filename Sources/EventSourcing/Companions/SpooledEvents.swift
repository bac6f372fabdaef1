// What a companion knows of its own spools: their events, in order, and which of them the main log has. Read without
// a lock, before the main log is. Spec/format/companions.md, COMP-6.

import Foundation
import LogFormat
import LogStorage

/// The events in the spools of one companion.
struct SpooledEvents {
    private struct Spool {
        var cursor: LogCursor
        var incarnation: UInt128?
        var events: [Event] = []
    }

    private var spools: [SpoolName: Spool] = [:]
    /// The ids of the events in `spools`.
    private var ids: [UInt128: Event] = [:]
    /// The ids, of those in spools, that the folded part of the main log knows.
    private var absorbed: Set<UInt128> = []
    /// The ids that were not looked up in the main log yet.
    private(set) var unresolved: Set<UInt128> = []
    /// The events that the folded part of the main log does not have, in order.
    private(set) var waiting: [Event] = []
    /// The number of changes of `waiting` other than at its end.
    private(set) var rewrites = 0

    /// True if some spool has the event.
    func event(_ id: UUID) -> Event? { ids[id.integer] }
    /// True if some spool has an event that the main log is not known to have.
    func isWaiting(_ id: UInt128) -> Bool { ids[id] != nil && !absorbed.contains(id) }
    /// The events that wait, and their bytes.
    var backlog: CompanionBacklog {
        CompanionBacklog(
            events: waiting.count, bytes: waiting.reduce(0) { $0 + $1.lineBytes + 1 })
    }
    /// The number of events that are known to be in a spool.
    func count(in spool: SpoolName) -> Int { spools[spool]?.events.count ?? 0 }
    /// The bytes of the lines that are known to be in a spool.
    func bytes(in spool: SpoolName) -> Int {
        spools[spool]?.events.reduce(0) { $0 + $1.lineBytes + 1 } ?? 0
    }

    /// Reads the new lines of a spool. Spools that are gone stay until `forget(except:)`: the main log, read next, has
    /// their events.
    ///
    /// - Throws: `LogError` for a spool that cannot be read; a damaged one counts up to the damage.
    mutating func read(
        _ name: SpoolName, in folder: SpoolFolder, _ catalogue: EventCatalogue
    ) throws {
        let incarnation = folder.incarnation(of: name)
        var spool = spools[name] ?? Spool(cursor: folder.cursor(name))
        if incarnation != spool.incarnation {
            // The folder was emptied and used again: its lines begin anew.
            spool.cursor = folder.cursor(name)
            unresolved.formUnion(spool.events.map(\.id.integer))
        }
        spool.incarnation = incarnation
        var new: [Event] = []
        do {
            try spool.cursor.poll { prefix, line in
                guard ids[prefix.id] == nil else { return true }
                new.append(
                    try LogReader.event(line, prefix, catalogue, directory: folder.path(of: name)))
                return true
            }
        } catch let error as LogError where error.code == .noSuchLog || error.isDamage {}
        for event in new {
            ids[event.id.integer] = event
            unresolved.insert(event.id.integer)
        }
        spool.events += new
        spools[name] = spool
        if !new.isEmpty { arrange() }
    }

    /// Adds events that the companion has just appended.
    mutating func append(
        _ events: [Event], to name: SpoolName, of incarnation: UInt128, in folder: SpoolFolder
    ) {
        var spool = spools[name] ?? Spool(cursor: folder.cursor(name), incarnation: incarnation)
        spool.events += events
        spools[name] = spool
        for event in events { ids[event.id.integer] = event }
        waiting += events
        // A process with the same companion may have begun a later spool.
        if let last = spools.keys.max(), last != name { arrange() }
    }

    /// Notes that the folded part of the main log has an event.
    mutating func markAbsorbed(_ found: Set<UInt128>) {
        let new = found.filter { ids[$0] != nil }
        unresolved.subtract(new)
        guard !new.isSubset(of: absorbed) else { return }
        absorbed.formUnion(new)
        arrange()
    }

    /// Notes that all ids have been looked up in the main log.
    mutating func resolve() { unresolved = [] }

    /// Forgets the spools that are gone. Their events are in the main log.
    mutating func forget(except names: [SpoolName]) {
        let gone = Set(spools.keys).subtracting(names)
        guard !gone.isEmpty else { return }
        for name in gone {
            for event in spools.removeValue(forKey: name)?.events ?? [] {
                ids[event.id.integer] = nil
                absorbed.remove(event.id.integer)
                unresolved.remove(event.id.integer)
            }
        }
        arrange()
    }

    private mutating func arrange() {
        waiting = spools.sorted { $0.key < $1.key }.flatMap(\.value.events)
            .filter { !absorbed.contains($0.id.integer) }
        rewrites += 1
    }
}

// One device of a WireHistory: a real store in a real folder, and its replayer behind a proxy. It runs in
// days: on a day it records and syncs concurrently, and is then suspended, closed, copied, or restored from
// the copy.

import DaybookOffline
import DaybookTestKit
import Foundation
import Synchronization

/// A device with its store, its proxy and its acknowledged events.
actor WireDevice {
    let name: Int
    let proxy: HostileProxy
    private let folder: URL
    private let transport: HTTPTransport
    private let options: WireHistory.Options
    private var events: WireEvents
    private var store: OfflineStore
    private let total: Int
    private var remaining: Int
    private var copy: Copy?
    private var isRestored = false
    /// The events whose append returned, without those that a restored copy has lost.
    private(set) var acknowledged: Set<UUID> = []
    private(set) var counts: [String: Int] = [:]

    private struct Copy {
        var folder: URL
        var acknowledged: Set<UUID>
    }

    init(
        _ name: Int, in parent: URL, server: UInt16, events count: Int,
        options: WireHistory.Options
    ) async throws {
        self.name = name
        self.options = options
        folder = parent.appending(path: "device-\(name)")
        var faults = HostileProxy.Options()
        faults.delayMilliseconds = options.timeoutMilliseconds * 3 / 2
        proxy = try HostileProxy(
            to: server, seed: options.seed &+ UInt64(name) << 32, options: faults)
        transport = HTTPTransport(
            endpoint: proxy.url.appending(path: "v1/events"),
            timeoutSeconds: Double(options.timeoutMilliseconds) / 1_000)
        events = WireEvents(device: name, seed: options.seed)
        (total, remaining) = (count, count)
        store = try await OfflineStore.open(at: folder, account: "local")
    }

    private func count(_ label: String, by number: Int = 1) {
        counts[label, default: 0] += number
    }

    // MARK: Days

    /// Whether the device has recorded all its events.
    var isDone: Bool { remaining == 0 }

    /// Runs one day.
    func runDay() async throws {
        let store = store
        let milliseconds = 1 + events.draw(options.dayMilliseconds)
        // Some days end in the middle of a request.
        let isAbrupt = events.draw(4) == 0
        let end = store.events.deviceNow + Int64(milliseconds) + (isAbrupt ? 60_000 : 0)
        async let synced: Void = sync(.at(Timestamp(milliseconds: end)), store)
        try await record(min(remaining, options.eventsADay))
        if isAbrupt { try await Task.sleep(for: .milliseconds(milliseconds)) } else { await synced }
        try await endDay(isAbrupt: isAbrupt)
        await synced
        if events.draw(2) == 0 { try await Task.sleep(for: .milliseconds(events.draw(200))) }
    }

    private func endDay(isAbrupt: Bool) async throws {
        if name == 0, copy != nil, !isRestored, remaining < options.eventsADay * 4 {
            return try await restoreCopy()
        }
        if name == 0, copy == nil, remaining <= total / 2 { return try await makeCopy() }
        // After an abrupt end, a run is in progress that would only end much later: always stop it.
        switch events.draw(isAbrupt ? 4 : 8) {
        case 0, 1:
            count("devices: suspended")
            try await store.suspend()
            try await store.resume()
        case 2, 3:
            count("devices: closed and opened")
            try await close()
            try await open()
        case 4, 5:
            guard name == 0, !isRestored else { return }
            try await makeCopy()
        default: return
        }
    }

    private func close() async throws { try await store.close() }

    private func open() async throws {
        store = try await OfflineStore.open(at: folder, account: "local")
    }

    /// Copies the folder, as a backup does.
    private func makeCopy() async throws {
        try await close()
        let target = folder.deletingLastPathComponent().appending(path: "copy-\(name)")
        if copy != nil { try FileManager.default.removeItem(at: target) }
        try FileManager.default.copyItem(at: folder, to: target)
        copy = Copy(folder: target, acknowledged: acknowledged)
        try await open()
    }

    /// Replaces the folder by the copy. Events that were recorded since and not shipped are lost. The store
    /// must then use a new incarnation. If the old folder is removed before, the system may reuse its inodes.
    /// Where it stores no creation times, the store cannot detect the copy; the server does.
    private func restoreCopy() async throws {
        guard let copy else { return }
        isRestored = true
        let incarnation = store.events.incarnation
        count("devices: events lost with the folder", by: store.view(Outbox.self).count)
        try await close()
        let isRemovedBefore = events.draw(2) == 0
        let oldFolder = folder.deletingLastPathComponent().appending(path: "old-\(name)")
        if isRemovedBefore {
            try FileManager.default.removeItem(at: folder)
        } else {
            try FileManager.default.moveItem(at: folder, to: oldFolder)
        }
        try FileManager.default.copyItem(at: copy.folder, to: folder)
        acknowledged = copy.acknowledged
        try await open()
        count("devices: put back to a copy")
        if store.events.incarnation == incarnation {
            count("devices: put back, and not noticed")
            guard isRemovedBefore else {
                throw WireFailure(
                    "device \(name) kept its incarnation after its folder was replaced by a copy")
            }
        }
    }

    // MARK: Recording

    private func record(_ number: Int) async throws {
        var batch: [EventDraft] = []
        for _ in 0..<number {
            remaining -= 1
            switch try events.next() {
            case .draft(let draft): batch.append(draft)
            case .note(let note, let text): try await changeNote(note, text)
            }
            if batch.count > events.draw(20) { try await appendBatch(&batch) }
        }
        try await appendBatch(&batch)
    }

    private func appendBatch(_ batch: inout [EventDraft]) async throws {
        guard !batch.isEmpty else { return }
        try await store.events.append(contentsOf: batch)
        acknowledged.formUnion(batch.map(\.id))
        count("devices: events recorded", by: batch.count)
        batch = []
    }

    /// Updates a note with its current head as the base, or adds it.
    private func changeNote(_ note: String, _ text: String) async throws {
        let id = UUID()
        try await store.write { transaction in
            guard let head = transaction.view(NotesView.self).head(note) else {
                transaction.append(
                    try EventDraft(
                        NoteAdded(noteId: note, cityId: "lisbon", content: text, createdBy: "ana"),
                        id: id))
                return
            }
            transaction.append(
                try EventDraft(
                    NoteUpdated(noteId: note, content: text, updatedBy: "ana"), id: id,
                    basedOn: head))
        }
        acknowledged.insert(id)
        count("devices: events recorded")
    }

    // MARK: Syncing

    private func sync(_ end: Replayer.End, _ store: OfflineStore) async {
        var options = Replayer.Options()
        options.resolver = KeepMine()
        let replayer = Replayer(store.events, transport: transport, options: options)
        // The last progress report, since an interrupted run returns none.
        let last = Mutex(SyncReport())
        do {
            let report = try await replayer.run(until: end) { report in
                last.withLock { $0 = report }
            }
            last.withLock { $0 = report }
        } catch {
            // The store was closed or suspended during the run.
            count("devices: runs broken off")
        }
        let report = last.withLock { $0 }
        count("devices: runs")
        count("devices: applied", by: report.applied)
        count("devices: duplicate", by: report.duplicate)
        count("devices: parked", by: report.rejected)
        count("devices: conflicts", by: report.conflict)
        count("devices: conflicts resolved", by: report.resolved)
        count("devices: received", by: report.received)
    }

    /// Syncs without faults, after a retry of all failed events.
    ///
    /// - Returns: the number of events in the outbox, and the number of received ones.
    func syncWithoutFaults() async throws -> (pending: Int, received: Int) {
        for entry in Array(store.outbox.entries) where entry.status == .failed {
            count("devices: retried by hand")
            try await store.outbox.retry(entry.id)
        }
        let before = counts["devices: received"] ?? 0
        await sync(.whenNothingMoves, store)
        return (store.view(Outbox.self).count, (counts["devices: received"] ?? 0) - before)
    }

    // MARK: The end

    /// Descriptions of the events in the outbox.
    var pendingDescriptions: [String] {
        store.outbox.entries.map { "\($0.action) \($0.status) \($0.errorMessage ?? "")" }
    }

    /// The rows of the device's views.
    var rows: [String] { WireCheck.rows(of: OfflineModel.views.map { state(of: $0) }) }

    private func state<View: ListableView>(of view: View.Type) -> any ListableView {
        store.view(view)
    }

    /// The ids of acknowledged events that are not retracted.
    func idsExpectedOnServer() async throws -> Set<UUID> {
        var ids = acknowledged
        try await store.events.flush()
        try store.events.log.forEachEvent(
            from: Position(1), catalogue: store.events.catalogue
        ) { event in
            guard event.isOwn, let json = event.content.json else { return true }
            if event.type == EventsDiscarded.type {
                for target in try EventsDiscarded(json: json).events { ids.remove(target.id) }
            } else if event.type == EventsReinstated.type {
                for target in try EventsReinstated(json: json).events { ids.insert(target.id) }
            }
            return true
        }
        return ids
    }

    /// Stops the proxy and closes the store.
    func end() async throws {
        proxy.stop()
        try await close()
    }
}

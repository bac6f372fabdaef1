// The code of the article "Syncing".

import DaybookOffline
import DaybookTestKit
import Foundation
import Testing

// Syncing-1 begins
/// What an app starts when it starts, and cancels at logout.
func keepInStep(_ store: OfflineStore, with server: any Transport) -> Task<Void, any Error> {
    let service = SyncService(store, transport: server, user: "user-456")
    return Task { try await service.run() }
}
// Syncing-1 ends

@Test func theServiceShips() async throws {
    let store = try await OfflineStore.inMemory()
    try await store.cities.save("lisbon", by: "user-456")
    let syncing = keepInStep(store, with: PickyServer())
    while store.view(Outbox.self).count > 0 { try await Task.sleep(for: .milliseconds(10)) }
    syncing.cancel()
    _ = await syncing.result
    try await store.close()
}

// Syncing-2 begins
func refreshInBackground(
    _ store: OfflineStore, _ endpoint: URL, until deadline: Date
) async throws {
    let report = try await store.sync(
        to: endpoint, credentials: NoCredentials(), resolver: KeepMine(), until: deadline)
    print("\(report.applied) shipped, \(report.received) received, \(report.pending) left")
}
// Syncing-2 ends

@Test func aRefreshWithoutAServerEndsInTime() async throws {
    let store = try await OfflineStore.inMemory()
    try await store.cities.save("lisbon", by: "user-456")
    let nobody = try #require(URL(string: "http://127.0.0.1:9/v1/events"))
    try await refreshInBackground(store, nobody, until: Date(timeIntervalSinceNow: 0.5))
    #expect(store.view(Outbox.self).count == 1)
    try await store.close()
}

// Syncing-3 begins
/// Joins both texts of a note that was changed on two devices.
let joinTexts = Merge { conflict in
    guard let mine = conflict.pending.last?.content, mine.type == NoteUpdated.type,
        let theirs = conflict.current, theirs.type == NoteUpdated.type
    else { return nil }
    var note = try NoteUpdated(json: mine.json ?? [])
    note.content = try NoteUpdated(json: theirs.json ?? []).content + "\n" + note.content
    return try EventDraft(note)
}
// Syncing-3 ends

@Test func whatCannotBeJoinedStaysUndecided() async throws {
    let conflict = Conflict(lane: "note:n", current: nil, pending: [])
    guard case .undecided = try await joinTexts.resolve(conflict) else {
        Issue.record("something was decided")
        return
    }
}

// Syncing-4 begins
/// Tries again what the server did not want, and does without what is of no use any more.
func decide(_ store: OfflineStore, isUseful: (OutboxEntry) -> Bool) async throws {
    for entry in Array(store.outbox.entries) where entry.parking == .rejected {
        if isUseful(entry) {
            try await store.outbox.retry(entry.id)
        } else {
            try await store.outbox.discard(entry.id, withDependents: true)
        }
    }
}
// Syncing-4 ends

@Test func whatIsDiscardedWasNeverThere() async throws {
    let store = try await OfflineStore.inMemory()
    try await store.cities.save("lisbon", by: "user-456")
    try await store.cities.save("atlantis", by: "user-456")
    _ = try await Replayer(store.events, transport: PickyServer()).run()
    try await decide(store) { $0.entityId != "atlantis" }
    #expect(store.view(CitiesView.self).cityIDs == ["lisbon"])
    #expect(store.view(Outbox.self).count == 0)
    try await store.close()
}

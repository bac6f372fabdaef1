// Opens a log for writing, as an app does.

import DaybookOffline

enum ToolStore {
    /// Opens the log in a folder and locks it. The states of an app's own views are kept. Notes what a copied
    /// folder lacks, since only its first opening knows.
    ///
    /// - Parameters:
    ///   - account: the account that the log must have; nil accepts any.
    ///   - create: whether a missing or empty folder becomes a new log.
    static func open(
        _ directory: String, account: String? = nil, create: Bool = false
    ) async throws -> EventStore {
        let store = try await EventStore.open(
            at: directory, account: account, create: create, catalogue: OfflineModel.catalogue,
            views: OfflineModel.views + [Outbox.self], keepingUnknownStates: true)
        if let missing = store.recovery.missing {
            Message.note(Message.text(forMissing: missing))
        }
        await store.restoreClock()
        return store
    }

    /// Calls a closure with an opened log and closes the log, also after an error.
    static func closing<Result>(
        _ store: EventStore, _ body: (EventStore) async throws -> Result
    ) async throws -> Result {
        let result: Result
        do { result = try await body(store) } catch {
            try? await store.close()
            throw error
        }
        try await store.close()
        return result
    }
}

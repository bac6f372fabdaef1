// Opens a log to change it, as an app's store does.

import DaybookOffline

enum ToolStore {
    /// Opens the log in a folder and takes its lock. The states of an app's own views are kept.
    ///
    /// - Parameters:
    ///   - account: whose log it must be; nil takes whatever the log says.
    ///   - create: whether a missing or empty folder becomes a new log.
    static func open(
        _ directory: String, account: String? = nil, create: Bool = false
    ) async throws -> EventStore {
        let store = try await EventStore.open(
            at: directory, account: account, create: create, catalogue: OfflineModel.catalogue,
            views: OfflineModel.views + [Outbox.self], keepingUnknownStates: true)
        await store.restoreClock()
        return store
    }

    /// Does something with an opened log and closes it, whatever comes of that.
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

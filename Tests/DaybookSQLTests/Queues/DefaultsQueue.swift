// A queue in a dictionary of settings, as UserDefaults is one, written as apps write it. Its faults are those of
// public reports.

import DaybookTestKit
import Foundation

/// Saves when the app goes to the background, retries three times without a wait, and never sends a change
/// again after that (SandeepVashishtha/Eventra#8054). Settings cannot be read before the first unlock, and
/// are empty then (rdar://16761393). A key is made for each attempt. It belongs to the device, not to a user.
actor DefaultsQueue: OfflineQueue {
    private struct Entry: Codable {
        var change: TrialChange
        var retries = 0
    }

    private let api: ScriptedAPI
    private var settings = StoredFile()
    private var entries: [Entry] = []
    private var user = "alice"

    init(sendingTo api: ScriptedAPI) { self.api = api }

    func enqueue(_ change: TrialChange) { entries.append(Entry(change: change)) }

    func run(after signal: QueueSignal) async {
        for _ in 0..<3 {
            let page = entries.prefix(50)
            entries.removeFirst(page.count)
            for var entry in page {
                if entry.retries < 3, await send(entry.change) { continue }
                entry.retries += 1
                entries.append(entry)
            }
            // Only what failed is tried again.
            guard page.contains(where: { entry in entries.contains { $0.change == entry.change } })
            else { break }
        }
        settings.content = try? JSONEncoder().encode(entries)
    }

    private func send(_ change: TrialChange) async -> Bool {
        let reply = try? await api.send(change, key: UUID().uuidString, user: user)
        return reply.map { 200..<300 ~= $0.status } ?? false
    }

    func pending() -> [PendingChange] { entries.map { PendingChange($0.change) } }

    func killAndReopen() {
        entries =
            (try? JSONDecoder().decode([Entry].self, from: settings.content ?? Data())) ?? []
    }

    func setStorage(_ condition: StorageCondition) { settings.condition = condition }

    func signIn(as user: String) { self.user = user }
}

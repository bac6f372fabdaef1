// A queue in a JSON file, written as apps write it. Its faults are those of public reports.

import DaybookTestKit
import Foundation

// json queue begins
/// Keeps its changes in `Caches`, sends them when the network comes back, and deletes a change after any
/// answer, as RatLoopz/sahidawa-india#4072 reports.
actor JSONFileQueue: OfflineQueue {
    private let api: ScriptedAPI
    private var file = StoredFile()
    private var changes: [TrialChange] = []
    private var user = "alice"

    init(sendingTo api: ScriptedAPI) { self.api = api }

    func enqueue(_ change: TrialChange) {
        changes.append(change)
        save()
    }

    func run(after signal: QueueSignal) async {
        guard signal == .networkReturned else { return }
        while let change = changes.first {
            guard (try? await api.send(change, user: user)) != nil else { return }
            changes.removeFirst()
            save()
        }
    }

    func pending() -> [PendingChange] { changes.map { PendingChange($0) } }

    func killAndReopen() {
        changes =
            (try? JSONDecoder().decode([TrialChange].self, from: file.content ?? Data())) ?? []
    }

    private func save() { file.content = try? JSONEncoder().encode(changes) }

    func setStorage(_ condition: StorageCondition) {
        if condition == .purged { file.content = nil }
        file.condition = condition
    }

    func signIn(as user: String) {
        self.user = user
        changes = []
        save()
    }
}
// json queue ends

/// A file of the device: its reads and writes fail as the condition says. Writing replaces the file, which is
/// possible while the old content is unreadable.
struct StoredFile {
    var condition = StorageCondition.normal
    private var stored: Data?

    var content: Data? {
        get { condition == .unreadable ? nil : stored }
        set { if condition != .full { stored = newValue } }
    }
}

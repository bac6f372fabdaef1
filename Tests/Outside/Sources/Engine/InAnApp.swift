// The code of the article "Using a store in an app", inside types of the main actor as apps have them.

import Daybook
import Foundation
import Observation

// InAnApp-1 begins
@MainActor @Observable
final class HabitScreen {
    private let store: EventStore
    private var minutesOfHabit: Observed<Int>

    /// The habit that the screen shows. The old query ends with its `Observed`.
    var habit: String { didSet { minutesOfHabit = Self.observed(store, habit) } }
    var minutes: Int { minutesOfHabit.value }

    init(_ store: EventStore, habit: String) {
        self.store = store
        self.habit = habit
        minutesOfHabit = Self.observed(store, habit)
    }

    private static func observed(_ store: EventStore, _ habit: String) -> Observed<Int> {
        Observed(store.query(Habits.self) { $0.minutes[habit] ?? 0 })
    }
}
// InAnApp-1 ends

// InAnApp-2 begins
/// The service that issues tokens.
protocol Issuer: Sendable {
    /// A new token and its lifetime in seconds; nil if the old one is not accepted any more.
    func renew(_ token: String) async throws -> (token: String, seconds: TimeInterval)?
}

@MainActor
final class Account {
    let credentials: RefreshingCredentials

    init(_ issuer: any Issuer, secrets: any SecretStore) {
        credentials = RefreshingCredentials(store: secrets) { old in
            guard let old, let new = try await issuer.renew(old.value) else { return nil }
            let end = Timestamp(Date(timeIntervalSinceNow: new.seconds))
            return AccessToken(new.token, expiresAt: end)
        }
    }

    func didSignIn(_ token: String) async throws {
        try await credentials.set(AccessToken(token))
    }

    func signOut() async throws { try await credentials.signOut() }
}
// InAnApp-2 ends

@MainActor
final class HabitApp {
    private let store: EventStore
    private let credentials: any Credentials
    private var workers: StoreWorkers<EventStore>

    init(_ store: EventStore, _ credentials: any Credentials = NoCredentials()) {
        self.store = store
        self.credentials = credentials
        workers = store.workers(credentials: credentials)
    }

    // InAnApp-6 begins
    /// Syncs and tracks steps while the app runs. The app cancels the task at logout.
    func start(_ server: URL, _ http: HTTPOptions) throws -> Task<Void, any Error> {
        workers = store.workers(credentials: credentials, http: http)
        try workers.sync(to: server)
        workers.add(StepCounter(store: store))
        return Task { [workers] in try await workers.run() }
    }

    /// Called when the app comes to the front: syncs at once.
    func didBecomeActive() async { await workers.resume() }
    // InAnApp-6 ends

    // InAnApp-3 begins
    /// The work of a background task: at most so many seconds, then nothing runs and no lock is held.
    func refreshInBackground(seconds: TimeInterval) async throws {
        try await store.resume()
        do {
            try await workers.run(until: Date(timeIntervalSinceNow: seconds))
        } catch { print("not all done: \(error)") }
        try await store.suspend()
    }
    // InAnApp-3 ends

    // InAnApp-4 begins
    /// The minutes as a widget or an extension of the app shows them: another process, without the lock.
    nonisolated static func minutes(of habit: String, in log: URL) async throws -> Int {
        let reader = try await ReadOnlyStore.open(at: log, views: [Habits.self])
        return await reader.view(Habits.self).minutes[habit] ?? 0
    }
    // InAnApp-4 ends

    // InAnApp-5 begins
    /// Imports the records of a watch, which have numbers of their own.
    func importRuns(_ runs: [(number: Int, minutes: Int)]) async throws -> Int {
        let drafts = try runs.map { run in
            try EventDraft(
                HabitDone(habit: "running", minutes: run.minutes),
                id: EventDraft.derivedID(from: "watch-run:\(run.number)"))
        }
        return try await store.append(contentsOf: drafts).filter(\.isNew).count
    }
    // InAnApp-5 ends
}

// InAnApp-7 begins
/// Records the steps of a pedometer.
struct StepCounter: StoreWorker {
    let store: EventStore
    var steps: @Sendable () -> AsyncStream<Int> = { AsyncStream { $0.finish() } }

    func run() async throws {
        for await minutes in steps() {
            try await store.append(HabitDone(habit: "walking", minutes: minutes))
        }
    }

    /// Nothing to do in a background task.
    func work(until deadline: Date) {}
}
// InAnApp-7 ends

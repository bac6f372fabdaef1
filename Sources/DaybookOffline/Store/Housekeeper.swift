// What a store removes by itself because it was kept long enough: cities that were not accessed,
// finished download jobs. Beside the store that owns it. Spec/model/cities.md, CITY-15.

import Daybook
import Foundation
import Synchronization

/// Cleans up a store when it is opened and resumed, and every hour while it is open.
final class Housekeeper: Sendable {
    private let user: String?
    private let timer = Mutex<Task<Void, Never>?>(nil)

    /// The time between two clean-ups of an open store.
    private static let interval = Duration.seconds(3_600)

    /// - Parameter user: whose settings say how long cities are kept; nil keeps them all.
    init(user: String?) { self.user = user }

    deinit { timer.withLock { $0?.cancel() } }

    /// Cleans up now, then every hour until `end()`. The timer keeps no store alive.
    func begin(_ events: EventStore, _ files: FileStore) async {
        let (user, sleep) = (user, events.environment.sleep)
        await Self.cleanUp(events, files, for: user)
        let hourly = Task { [weak events, weak files] in
            while (try? await sleep(Self.interval)) != nil, !Task.isCancelled {
                guard let events, let files else { return }
                await Self.cleanUp(events, files, for: user)
            }
        }
        timer.withLock { old in
            old?.cancel()
            old = hourly
        }
    }

    /// Ends the hourly clean-up.
    func end() {
        timer.withLock { timer in
            timer?.cancel()
            timer = nil
        }
    }

    /// Removes what is due. Records nothing and reads no file where nothing is.
    private static func cleanUp(
        _ events: EventStore, _ files: FileStore, for user: String?
    ) async {
        do {
            while try await DownloadCommands(events).cleanUp() > 0 {}
            guard let user else { return }
            try await CityCommands(events, files).prune(for: user)
        } catch {
            // The log cannot be written just now: it is full, suspended or closed. The next time
            // does it.
        }
    }
}

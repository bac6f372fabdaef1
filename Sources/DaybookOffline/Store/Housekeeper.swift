// Removes expired data automatically: cities without recent access, finished download jobs. Owned by the
// store. Spec/model/cities.md, CITY-15.

import Daybook
import Foundation
import Synchronization

/// Cleans up a store when it is opened and resumed, and every hour while it is open.
final class Housekeeper: Sendable {
    /// The user whose settings determine how long cities are kept.
    let user: String?
    private let timer = Mutex<Task<Void, Never>?>(nil)

    /// The time between two clean-ups of an open store.
    private static let interval = Duration.seconds(3_600)

    /// - Parameter user: the user whose settings determine how long cities are kept; nil keeps all.
    init(user: String?) { self.user = user }

    deinit { timer.withLock { $0?.cancel() } }

    /// Cleans up now, then every hour until `end()`. The timer does not retain the store.
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

    /// Removes expired data. Without any, it records no event and reads no file.
    private static func cleanUp(
        _ events: EventStore, _ files: FileStore, for user: String?
    ) async {
        do {
            while try await DownloadCommands(events).cleanUp() > 0 {}
            guard let user else { return }
            try await CityCommands(events, files).prune(for: user)
        } catch {
            // The log cannot be written: the device is full, or the store suspended or closed. The next
            // clean-up retries.
        }
    }
}

// Asks the process that has a log open for the log: a tool beside a running app, a second window's process.
// Spec/format/companions.md, COMP-18.

import EventSourcing
import Foundation
import LogStorage

/// Requests for a log that another process has open.
public enum LogHandover {
    private static let interval = Duration.milliseconds(10)

    /// Runs work on a log that another process may have open: asks that process for the log, waits until it has
    /// released the lock, and runs `work`, which opens a store, uses it and closes it. Then the other process opens the
    /// log again. If no process has the log open, `work` runs at once.
    ///
    /// ```swift
    /// try await LogHandover.request(at: url, within: .seconds(2)) {
    ///     let store = try await EventStore.open(at: url, rules: rules, views: [Trips.self])
    ///     try await store.append(TripPlanned(trip: "spring", stop: "north pier"))
    ///     try await store.close()
    /// }
    /// ```
    ///
    /// - Parameters:
    ///   - url: the log's folder.
    ///   - duration: how long to wait.
    ///   - environment: file system and clock; tests bring their own.
    ///   - work: opens the log and closes it.
    /// - Throws: `LogError` (`locked`) with the holder's process if it does not release the log in time: it has not
    ///   called `EventStore.handOverOnRequest()`, or does not respond. And what `work` throws.
    public static func request<Result>(
        at url: URL, within duration: Duration = .seconds(2),
        environment: LogEnvironment = LogEnvironment(), _ work: () async throws -> Result
    ) async throws -> Result {
        let (directory, fileSystem) = (try url.localPath(), environment.fileSystem)
        let end = ContinuousClock.now + duration
        var request: HandoverRequest?
        while true {
            do {
                try HandoverRequest.requireFree(directory, fileSystem)
                break
            } catch let error where error.code == .locked {
                guard ContinuousClock.now < end else {
                    throw LogError(
                        .locked, path: directory,
                        "the log was requested and not handed over within \(duration): \(error.detail)"
                    )
                }
                if request == nil { request = try HandoverRequest(for: directory, fileSystem) }
                try await environment.sleep(interval)
            } catch {
                // Such as a folder that is missing: `work` may create it, or says what is wrong.
                break
            }
        }
        defer { withExtendedLifetime(request) {} }
        return try await work()
    }
}

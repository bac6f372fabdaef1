// The option with which a command asks the process that has the log open for it.

import ArgumentParser
import DaybookOffline
import Foundation

struct AskOptions: ParsableArguments {
    @Option(
        help: "Ask the process that has the log open for it, and wait for it up to so many seconds."
    )
    var ask: Double?

    func validate() throws {
        guard ask.map({ $0 > 0 && $0 <= 3_600 }) ?? true else {
            throw ValidationError("'--ask' must be more than 0 and at most 3600.")
        }
    }

    /// Runs work that opens a log.
    func opening<Result>(
        _ directory: String, _ work: () async throws -> Result
    ) async throws -> Result {
        guard let ask else { return try await work() }
        return try await LogHandover.request(
            at: URL(filePath: directory), within: .seconds(ask), work)
    }
}

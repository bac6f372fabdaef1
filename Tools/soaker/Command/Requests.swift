// The searches for changes that an app's own API gets never, or more often than promised.

import ArgumentParser
import DaybookTestKit
import Foundation
import RequestHistories

/// Simulates a device, a network and an API.
struct Requests: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Requests to an app's own API: lost, late and doubled; kills and power cuts.")
    @OptionGroup var options: SoakOptions
    @Option(help: "Number of histories of each job; overrides '--minutes'.")
    var histories: Int?

    func run() async throws {
        try await SoakRun(options, isTimed: histories == nil).run(histories, "requests") {
            try await RequestHistory.run(&$0)
        }
    }
}

/// Simulates two devices that read from an API, and change it.
struct Reading: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Two devices that read an app's own API: lists that are late, lost and partial.")
    @OptionGroup var options: SoakOptions
    @Option(help: "Number of histories of each job; overrides '--minutes'.")
    var histories: Int?

    func run() async throws {
        try await SoakRun(options, isTimed: histories == nil).run(histories, "reading") {
            try await ReadingHistory.run(&$0)
        }
    }
}

extension SoakRun {
    /// Runs a number of histories in each job; nil for as many as the time allows.
    fileprivate func run(
        _ histories: Int?, _ subject: String,
        _ body: @escaping @Sendable (inout Choices) async throws -> Void
    ) async throws {
        try await run { job in
            try await job.checkHistories(subject, runs: histories, body)
        }
    }
}

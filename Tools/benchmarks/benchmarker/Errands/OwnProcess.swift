// Work in a process of its own: what it has cost, and the most memory that it took, are then its own.
// Growth, Phone and the row of memory work so; the command `errand` is the other end.

import ArgumentParser
import Foundation

/// Work that another process of this program does.
protocol Errand: Codable, Sendable {
    /// What came of it.
    associatedtype Figures: Codable

    func perform() async throws -> Figures
}

extension Errand {
    /// Lets a process of its own do it.
    ///
    /// - Parameter prefix: a program that starts it, with its arguments.
    func inOwnProcess(under prefix: [String] = []) throws -> Measured<Figures> {
        let request = String(decoding: try JSONEncoder().encode(self), as: UTF8.self)
        let output = try output(
            of: prefix + [
                CommandLine.arguments[0], "errand", String(describing: Self.self), request,
            ])
        return try JSONDecoder().decode(Measured<Figures>.self, from: output)
    }

    /// Does it here, and says what is to be sent to whoever asked.
    fileprivate static func reply(to request: Data) async throws -> Data {
        let figures = try await JSONDecoder().decode(Self.self, from: request).perform()
        let measured = Measured(figures: figures, peakMiB: try SystemCounters.peakMiB())
        return try JSONEncoder().encode(measured)
    }
}

/// What came of an errand, and the most memory that its process took.
struct Measured<Figures: Codable>: Codable {
    let figures: Figures
    let peakMiB: Double
}

/// The command that such a process runs.
struct ErrandCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "errand", abstract: "Does one piece of work, and prints what came of it.",
        shouldDisplay: false)
    @Argument var name: String
    @Argument var request: String

    private static let all: [any Errand.Type] = [
        LogWork.self, Writing.self, Idling.self, Observing.self, Opening.self,
    ]

    func run() async throws {
        guard let errand = Self.all.first(where: { String(describing: $0) == name }) else {
            throw ValidationError("There is no such errand.")
        }
        FileHandle.standardOutput.write(try await errand.reply(to: Data(request.utf8)))
    }
}

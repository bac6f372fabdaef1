// Runs work in a child process, so that its costs and peak memory are not mixed with other work. The child
// process runs the hidden command `errand`.

import ArgumentParser
import Foundation

/// Work that runs in a child process of this program.
protocol Errand: Codable, Sendable {
    /// The result.
    associatedtype Figures: Codable

    func perform() async throws -> Figures
}

extension Errand {
    /// Performs the errand in a child process.
    ///
    /// - Parameter prefix: a program that starts the child process, with its arguments.
    func inOwnProcess(under prefix: [String] = []) throws -> Measured<Figures> {
        let request = String(decoding: try JSONEncoder().encode(self), as: UTF8.self)
        let output = try output(
            of: prefix + [
                CommandLine.arguments[0], "errand", String(describing: Self.self), request,
            ])
        return try JSONDecoder().decode(Measured<Figures>.self, from: output)
    }

    /// Performs an encoded errand in this process and returns the encoded result.
    fileprivate static func reply(to request: Data) async throws -> Data {
        let figures = try await JSONDecoder().decode(Self.self, from: request).perform()
        let measured = Measured(figures: figures, peakMiB: try SystemCounters.peakMiB())
        return try JSONEncoder().encode(measured)
    }
}

/// The result of an errand and the peak memory of its process.
struct Measured<Figures: Codable>: Codable {
    let figures: Figures
    let peakMiB: Double
}

/// The command of the child process.
struct ErrandCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "errand", abstract: "Does one piece of work, and prints the result.",
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

// The command `syncserver`. Its default subcommand is `serve` (Serve.swift).
// Spec/protocol/sync-protocol.md, Spec/operations/operating.md.

import ArgumentParser
import EventSourcing
import Foundation
import StandardStreams
import SyncServerStorage

@main
enum Main {
    static func main() async {
        StandardStream.prepare()
        ProgramArguments.requireUTF8(of: "syncserver")
        await SyncServer.main(ProgramArguments.separated)
    }
}

/// `syncserver`.
struct SyncServer: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "syncserver",
        abstract:
            "The sync server of daybook logs: stores their events, each once, and sends them.",
        discussion: """
            The default subcommand is serve: see "syncserver serve --help".

            Exit codes:

            """
                + Exit.allCases.map { "  \($0.rawValue)  \($0.meaning)" }.joined(separator: "\n"),
        version: DaybookVersion.text,
        subcommands: [
            Serve.self, Migrate.self, Erase.self, Prune.self, Restored.self, MakeToken.self,
        ],
        defaultSubcommand: Serve.self)

    /// Prints a line to standard output.
    ///
    /// - Throws: exit code 74 if it cannot be written, with a message on standard error.
    static func print(_ line: String) throws(ExitCode) {
        guard let reason = StandardStream.output.write(Array("\(line)\n".utf8)) else { return }
        throw failure("standard output: \(String(cString: strerror(reason)))", .io)
    }

    /// Writes a message to standard error, if it can be written.
    static func note(_ text: String) {
        _ = StandardStream.error.write(Array("syncserver: \(text)\n".utf8))
    }

    /// Writes a message to standard error and returns the exit code, which counts even if standard
    /// error cannot be written.
    static func failure(_ detail: String, _ code: Exit) -> ExitCode {
        note(detail)
        return ExitCode(code.rawValue)
    }

    private static func exitCode(of code: StorageError.Code) -> Exit {
        switch code {
        case .wrongDatabase: .badData
        case .missing: .noDatabase
        case .failed, .noSpace, .readOnly: .io
        }
    }

    /// Converts an error to an exit code, with a message.
    ///
    /// - Parameter consequence: the start of the message for a storage error.
    static func failure(_ error: any Error, _ consequence: String = "") -> any Error {
        switch error {
        case let error as StorageError:
            failure(consequence + error.detail, exitCode(of: error.code))
        case let error as AccountTokens.Fault: failure(error.detail, error.exitCode)
        case is ExitCode, is ValidationError, is CleanExit: error
        // Not left to ArgumentParser, which would print the Swift value and end with 1.
        default: failure(consequence + ErrorText.of(error), .io)
        }
    }
}

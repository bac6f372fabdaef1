// The command `syncserver`: serving, unless a subcommand is named. Serving itself is Serve.swift.
// Spec/protocol/sync-protocol.md, Spec/operations/operating.md.

import ArgumentParser
import Foundation
import StandardStreams
import SyncServerStorage

@main
enum Main {
    static func main() async {
        StandardStream.prepare()
        await SyncServer.main()
    }
}

/// `syncserver`.
struct SyncServer: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "syncserver",
        abstract: "Takes in the events of daybook logs, each once, and gives them out again.",
        discussion: """
            Without a subcommand it serves: see "syncserver serve --help".

            Exit codes:

            """
                + Exit.allCases.map { "  \($0.rawValue)  \($0.meaning)" }.joined(separator: "\n"),
        subcommands: [Serve.self, Migrate.self, Erase.self, Prune.self, MakeToken.self],
        defaultSubcommand: Serve.self)

    /// Prints a line to standard output.
    ///
    /// - Throws: exit code 74 if it cannot be written, said on standard error.
    static func print(_ line: String) throws(ExitCode) {
        guard let reason = StandardStream.output.write(Array("\(line)\n".utf8)) else { return }
        throw failure("standard output: \(String(cString: strerror(reason)))", .io)
    }

    /// Says why the command cannot go on. Where standard error cannot be written, the exit code still
    /// tells.
    static func failure(_ detail: String, _ code: Exit) -> ExitCode {
        _ = StandardStream.error.write(Array("syncserver: \(detail)\n".utf8))
        return ExitCode(code.rawValue)
    }

    private static func exitCode(of code: StorageError.Code) -> Exit {
        switch code {
        case .wrongDatabase: .badData
        case .missing: .noDatabase
        case .failed, .noRoom: .io
        }
    }

    /// Says it of an error of the storage or of a token file, and nothing of others.
    ///
    /// - Parameter consequence: what a failure of the storage means for the command.
    static func failure(_ error: any Error, _ consequence: String = "") -> any Error {
        switch error {
        case let error as StorageError:
            failure(consequence + error.detail, exitCode(of: error.code))
        case let error as AccountTokens.Fault: failure(error.detail, error.exitCode)
        default: error
        }
    }
}

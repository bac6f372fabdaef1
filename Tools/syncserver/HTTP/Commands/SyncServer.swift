// The command `syncserver`: serving, unless a subcommand is named. Serving itself is Serve.swift.
// Spec/sync-protocol.md, Spec/operating.md.

import ArgumentParser
import Foundation
import SyncServerStorage

/// `syncserver`.
@main
struct SyncServer: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "syncserver",
        abstract: "Takes in the events of daybook logs, each once, and gives them out again.",
        discussion: """
            Without a subcommand it serves: see "syncserver serve --help". Exit codes: 64 usage, \
            65 a database, a token file or a certificate that cannot be used, 74 I/O.
            """,
        subcommands: [Serve.self, Migrate.self, Erase.self, Prune.self, MakeToken.self],
        defaultSubcommand: Serve.self)

    /// Says why the command cannot go on.
    static func failure(_ detail: String, _ code: Int32) -> ExitCode {
        FileHandle.standardError.write(Data("syncserver: \(detail)\n".utf8))
        return ExitCode(code)
    }

    /// Says it of an error of the storage or of a token file, and nothing of others.
    static func failure(_ error: any Error) -> any Error {
        switch error {
        case let error as StorageError:
            failure(error.detail, error.code == .wrongDatabase ? 65 : 74)
        case let error as AccountTokens.Fault: failure(error.detail, error.exitCode)
        default: error
        }
    }
}

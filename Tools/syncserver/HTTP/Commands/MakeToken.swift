// `syncserver token`: creates a token. Spec/operations/operating.md.

import ArgumentParser
import LogFormat

/// `syncserver token`.
struct MakeToken: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "token",
        abstract: "Create a token for an account.",
        discussion: """
            Prints two lines: the token, for the device, and the line for the token file, which \
            contains only its digest. After adding the line, send the server SIGHUP.
            """)

    @Argument(help: "The account.")
    var account: String

    func validate() throws {
        guard !account.isEmpty, account.utf8.count <= FormatLimit.accountBytesMax,
            !account.contains(where: \.isWhitespace)
        else {
            throw ValidationError(
                "an account has 1 to \(FormatLimit.accountBytesMax) bytes and no spaces")
        }
    }

    func run() throws {
        let made = AccountTokens.make(for: account)
        try SyncServer.print("\(made.token)\n\(made.line)")
    }
}

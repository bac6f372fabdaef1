// The bearer tokens of --token-file and the accounts they stand for. Tokens are kept as a keyed
// hash only. The key is random and lives as long as the process, so neither a memory dump nor the
// time a look-up takes says anything about a token. Spec/sync-protocol.md, SYNC-3.

import Crypto
import Foundation
import LogFormat

/// Tokens and their accounts.
struct AccountTokens: Sendable {
    private let key = SymmetricKey(size: .bits256)
    private var accounts: [Data: String] = [:]

    /// Why a token file cannot be used. Never holds a token.
    struct Fault: Error {
        let detail: String
        /// 74 for a file that cannot be read, 65 for one that says nothing usable.
        let exitCode: Int32
    }

    /// Reads a file of lines `<token> <account>`. Empty lines and lines that begin with `#` say
    /// nothing.
    init(file path: String) throws {
        guard let data = FileManager.default.contents(atPath: path),
            let text = String(data: data, encoding: .utf8)
        else { throw Fault(detail: "cannot read the token file \(path)", exitCode: 74) }
        for (index, line) in text.split(separator: "\n", omittingEmptySubsequences: false)
            .enumerated()
        {
            let words = line.split(whereSeparator: \.isWhitespace)
            if words.isEmpty || line.hasPrefix("#") { continue }
            let place = "\(path), line \(index + 1)"
            guard words.count == 2, words[1].utf8.count <= FormatLimit.accountBytesMax else {
                throw Fault(
                    detail: "\(place): not a token and an account of at most "
                        + "\(FormatLimit.accountBytesMax) bytes",
                    exitCode: 65)
            }
            guard accounts.updateValue(String(words[1]), forKey: hash(words[0])) == nil else {
                throw Fault(detail: "\(place): the token stands there twice", exitCode: 65)
            }
        }
        guard !accounts.isEmpty else {
            throw Fault(detail: "\(path) holds no token", exitCode: 65)
        }
    }

    /// The account of a token.
    func account(of token: Substring) -> String? { accounts[hash(token)] }

    private func hash(_ token: Substring) -> Data {
        Data(HMAC<SHA256>.authenticationCode(for: Data(token.utf8), using: key))
    }
}

// The bearer tokens of --token-file and their accounts. Spec/protocol/sync-protocol.md, SYNC-3;
// Spec/operations/operating.md, OPS-1 and OPS-3.

import Cryptography
import EventSourcing
import Foundation
import LogFormat
import StandardStreams

/// Tokens and their accounts.
///
/// Only digests are stored. A fast digest is enough: a token has 256 random bits, which cannot be
/// guessed, unlike a password that a person chose. The dictionary's key is the digest's HMAC under a
/// random key of this value. So the duration of a lookup tells a client only about a value that it can
/// neither choose nor compute, and nothing about a token.
struct AccountTokens: Sendable {
    /// The account of a known token.
    struct Credential: Sendable {
        /// The account.
        let account: String
        /// Identifies the token in this process only, also after the file was read again.
        let fingerprint: Data
    }

    /// The account that may read `/metrics`, and nothing else.
    static let operatorAccount = "@operator"

    /// The largest size of a token file in bytes: some million lines.
    private static let fileBytesMax = 256 * 1_024 * 1_024

    private let key: [UInt8]
    private var accounts: [Data: String] = [:]
    /// A warning about a usable file. Never contains a token.
    private(set) var warning: String?

    /// The reason why a token file is unusable. Never contains a token.
    struct Fault: Error {
        let detail: String
        /// 74 for a file that cannot be read, 65 for one with invalid content or permissions.
        let exitCode: Exit
    }

    /// Reads a file of lines `<token> <account>` or `sha256:<64 hex digits> <account>`. Empty lines
    /// and lines that begin with `#` are ignored.
    ///
    /// - Parameter key: the random key of the fingerprints. One key for all readings of a file keeps the
    ///   fingerprints of its tokens.
    /// - Throws: `Fault`; also for a file that all users may write.
    init(file path: String, key: [UInt8]) throws {
        self.key = key
        let file: SecretFile
        do throws(SecretFile.Fault) {
            file = try SecretFile(path, kind: "token file", bytesMax: Self.fileBytesMax)
        } catch {
            throw Fault(
                detail: error.description, exitCode: error.isUnreadable ? .io : .badData)
        }
        guard let text = String(validating: file.bytes.trimmingByteOrderMark, as: UTF8.self) else {
            throw Fault(detail: "the token file \(path) is not UTF-8", exitCode: .badData)
        }
        var holdsPlainTokens = false
        // Splits bytes, because "\r\n" is one Character that is not equal to "\n".
        let lines = text.utf8.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false)
        for (index, line) in lines.map(Substring.init).enumerated() {
            let words = line.split(whereSeparator: \.isWhitespace)
            if words.isEmpty || line.hasPrefix("#") { continue }
            let location = "\(path), line \(index + 1)"
            guard words.count == 2, words[1].utf8.count <= FormatLimit.accountBytesMax else {
                throw Fault(
                    detail: "\(location): expected a token and an account of at most "
                        + "\(FormatLimit.accountBytesMax) bytes",
                    exitCode: .badData)
            }
            let digest: Data
            if words[0].lowercased().hasPrefix(Self.digestPrefix) {
                guard let bytes = Self.bytes(hex: words[0].dropFirst(Self.digestPrefix.count))
                else {
                    throw Fault(
                        detail: "\(location): \(Self.digestPrefix) needs 64 hex digits",
                        exitCode: .badData)
                }
                digest = bytes
            } else {
                holdsPlainTokens = true
                digest = Self.digest(words[0])
            }
            guard accounts.updateValue(String(words[1]), forKey: blinded(digest)) == nil else {
                throw Fault(detail: "\(location): the token is listed twice", exitCode: .badData)
            }
        }
        guard !accounts.isEmpty else {
            throw Fault(detail: "\(path) has no tokens", exitCode: .badData)
        }
        warning = file.warning(isSecret: holdsPlainTokens)
    }

    /// Looks up a token; nil if it is unknown.
    func credential(of token: Substring) -> Credential? {
        let fingerprint = blinded(Self.digest(token))
        return accounts[fingerprint].map { Credential(account: $0, fingerprint: fingerprint) }
    }

    /// True if the token of a credential still belongs to the same account.
    func holds(_ credential: Credential) -> Bool {
        accounts[credential.fingerprint].map {
            $0.utf8.elementsEqual(credential.account.utf8)
        } ?? false
    }

    /// Creates a token of 256 random bits and its line for the file.
    static func make(for account: String) -> (token: String, line: String) {
        let random = Data(SecretBytes.random(32))
        let token = random.base64EncodedString()
            .replacing("+", with: "-").replacing("/", with: "_").replacing("=", with: "")
        return (token, "\(digestPrefix)\(digest(token[...]).hexadecimalDigits) \(account)")
    }

    private static let digestPrefix = "sha256:"

    private static func digest(_ token: Substring) -> Data {
        Data(SHA256.hash(Array(token.utf8)))
    }

    private func blinded(_ digest: Data) -> Data {
        Data(HMAC.sha256(Array(digest), key: key))
    }

    private static func bytes(hex: Substring) -> Data? {
        let digits = hex.compactMap(\.hexDigitValue)
        guard hex.utf8.count == 64, digits.count == 64 else { return nil }
        return Data(stride(from: 0, to: 64, by: 2).map { UInt8(digits[$0] * 16 + digits[$0 + 1]) })
    }
}

extension [UInt8] {
    /// The bytes after a byte order mark at the start, which some editors write.
    fileprivate var trimmingByteOrderMark: ArraySlice<UInt8> {
        starts(with: [0xEF, 0xBB, 0xBF]) ? dropFirst(3) : self[...]
    }
}

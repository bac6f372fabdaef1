// The tokens that a run has sent. A server can return them in any part of an answer, and none of them may be
// recorded. Spec/operations/secrets.md, SEC-1.

import EventSourcing
import LogFormat
import SyncWire

/// The tokens that a run has sent, and the search for them in a server's texts.
///
/// Texts are compared as bytes: as a `String`, a token with a combining mark after it is another
/// text. Case is ignored, because a token that is a UUID is recorded in lower case.
struct SentTokens: Sendable {
    /// Lower case, latest last.
    private var tokens: [[UInt8]] = []

    /// The largest number of stored tokens: a run without end renews its token again and again.
    private static let countMax = 16
    /// The smallest size in bytes of a token for which events and cursors are searched. Shorter ones are part
    /// of common words, and can be guessed.
    private static let searchedBytesMin = 8

    /// Adds a token that is about to be sent. Drops the oldest one beyond `countMax`.
    mutating func insert(_ token: String) {
        let token = Self.lowercased(token.utf8)
        guard !token.isEmpty, token != tokens.last else { return }
        tokens.removeAll { $0 == token }
        tokens.append(token)
        if tokens.count > Self.countMax { tokens.removeFirst() }
    }

    /// The verdicts without tokens: they are masked in codes and details, and a `current` that contains one is
    /// removed.
    func masked(_ verdicts: [Verdict]) -> [Verdict] {
        guard !tokens.isEmpty else { return verdicts }
        var verdicts = verdicts
        for index in verdicts.indices {
            if let code = verdicts[index].code { verdicts[index].code = masked(code) }
            if let detail = verdicts[index].detail { verdicts[index].detail = masked(detail) }
            if let current = verdicts[index].current, isFound(inJSON: current.json.span.bytes) {
                verdicts[index].current = nil
            }
        }
        return verdicts
    }

    /// The outcomes with tokens masked in codes and details: an error of the app's own transport may have one.
    func masked(_ settlement: ReplayState.Settlement) -> ReplayState.Settlement {
        guard !tokens.isEmpty, !settlement.entries.isEmpty else { return settlement }
        var settlement = settlement
        for index in settlement.entries.indices {
            let entry = settlement.entries[index]
            settlement.entries[index].code = entry.code.map(masked)
            settlement.entries[index].detail = entry.detail.map(masked)
        }
        return settlement
    }

    /// The text with `…` in place of each token.
    func masked(_ text: String) -> String {
        var bytes = Array(text.utf8)
        for token in tokens {
            let searched = Self.lowercased(bytes)
            var masked: [UInt8] = []
            var start = 0
            while let match = Self.offset(of: token, in: searched, from: start) {
                masked += bytes[start..<match] + Array("…".utf8)
                start = match + token.count
            }
            if start > 0 { bytes = masked + bytes[start...] }
        }
        return String(decoding: bytes, as: UTF8.self)
    }

    /// Whether a JSON text contains a token, escaped or not. O(bytes).
    func isFound(inJSON text: RawSpan) -> Bool {
        guard tokens.contains(where: { $0.count >= Self.searchedBytesMin }) else { return false }
        return isFound(in: Self.unescapedJSON(text))
    }

    /// Whether an event that an answer teaches contains a token. O(bytes).
    func isFound(in draft: EventDraft) -> Bool {
        let texts = [draft.type, draft.subject, draft.lane, draft.dataContentType]
        let data: [UInt8] =
            switch draft.data {
            case .none: []
            case .json(let bytes), .base64(let bytes): bytes
            }
        return texts.contains { isFound(in: Array(($0 ?? "").utf8)) }
            || (draft.extensions.map(\.json) + [data]).contains { isFound(inJSON: $0.span.bytes) }
    }

    /// Whether a cursor contains a token, percent-encoded or not.
    func isFound(inCursor cursor: String) -> Bool {
        let bytes = Array(cursor.utf8)
        return isFound(in: bytes) || isFound(in: AccountHeader.percentDecoded(bytes))
    }

    private func isFound(in bytes: [UInt8]) -> Bool {
        let searched = Self.lowercased(bytes)
        return tokens.contains {
            $0.count >= Self.searchedBytesMin && Self.offset(of: $0, in: searched) != nil
        }
    }

    private static func offset(
        of token: [UInt8], in bytes: [UInt8], from start: Int = 0
    ) -> Int? {
        let text = bytes.span.bytes
        var start = start
        while let offset = text.offset(of: token[0], from: start) {
            if text.matches(token, at: offset) { return offset }
            start = offset + 1
        }
        return nil
    }

    private static func lowercased(_ bytes: some Sequence<UInt8>) -> [UInt8] {
        bytes.map { UInt8(ascii: "A")...UInt8(ascii: "Z") ~= $0 ? $0 | 0x20 : $0 }
    }

    /// The bytes of a JSON text with its escapes decoded. A token is visible ASCII, so the escape of any
    /// other character becomes 0xFF, which matches no token.
    private static func unescapedJSON(_ text: RawSpan) -> [UInt8] {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(text.byteCount)
        var start = 0
        func append(through end: Int) {
            text.extracting(start..<end).withUnsafeBytes { bytes.append(contentsOf: $0) }
        }
        while let backslash = text.offset(of: UInt8(ascii: "\\"), from: start) {
            append(through: backslash)
            start = min(backslash + 2, text.byteCount)
            guard backslash + 1 < text.byteCount else { break }
            let escaped = text.byte(at: backslash + 1)
            guard escaped == UInt8(ascii: "u"), backslash + 6 <= text.byteCount else {
                bytes.append(escaped)
                continue
            }
            start = backslash + 6
            let value = JSONText.hex(text, at: backslash + 2) ?? 0xFF
            bytes.append(value < 0x80 ? UInt8(value) : 0xFF)
        }
        append(through: text.byteCount)
        return bytes
    }
}

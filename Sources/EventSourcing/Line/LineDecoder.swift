// Reads a CloudEvents 1.0 event in JSON format, member by member in any order: lines of the log,
// lines to import, elements of a batch. Spec/line.md.

import Foundation
import LogFormat

/// An event as read from a line, with its place if the line had one.
package struct DecodedLine: Sendable {
    package var draft: EventDraft
    package var source: String?
    package var sequence: UInt64?
    package var position: UInt64?
}

/// Reads lines.
package enum LineDecoder {
    /// Reads one event.
    ///
    /// - Throws: `EventError`: `notJSON`, `badAttribute`, `tooLarge`.
    package static func decode(_ line: RawSpan) throws(EventError) -> DecodedLine {
        guard line.byteCount <= FormatLimit.lineBytesMax else {
            throw EventError(
                .tooLarge,
                "the event has \(line.byteCount) bytes; at most \(FormatLimit.lineBytesMax) fit")
        }
        var reader = Reader()
        var failure: EventError?
        do throws(JSONError) {
            try checkUTF8(line)
            var scanner = JSONScanner()
            guard scanner.peek(line) == UInt8(ascii: "{") else {
                throw scanner.fault("an event is a JSON object")
            }
            try scanner.members(line) { (scanner, name) throws(JSONError) in
                let value = try scanner.value(line, depth: 1)
                guard failure == nil else { return }
                do throws(EventError) {
                    try reader.take(JSONText.string(line, name), line, value)
                } catch { failure = error }
            }
            try scanner.expectEnd(line)
        } catch {
            throw EventError(.notJSON, "not JSON: \(error.detail) (byte \(error.offset + 1))")
        }
        if let failure { throw failure }
        return try reader.finish()
    }

    /// The event of a line that this log holds.
    ///
    /// - Throws: `EventError` where the line is not what a writer of this format writes.
    package static func event(
        _ line: RawSpan, _ prefix: LinePrefix, _ catalogue: EventCatalogue
    ) throws(EventError) -> Event {
        let decoded = try decode(line)
        guard decoded.draft.lane != nil, decoded.draft.time != nil else {
            throw EventError(.badAttribute, "a stored line has no partitionkey or no time")
        }
        return Event(
            prefix, content: decoded.draft, catalogue: catalogue, lineBytes: line.byteCount)
    }

    private static func checkUTF8(_ line: RawSpan) throws(JSONError) {
        let isValid = line.withUnsafeBytes { bytes in
            String(validating: bytes, as: UTF8.self) != nil
        }
        guard isValid else { throw JSONError(offset: 0, detail: "it is not UTF-8") }
    }

    /// Gathers the members of one event.
    private struct Reader {
        private var seen: Set<String> = []
        private var id: UUID?
        private var isVersion1 = false
        private var hasBase64 = false
        private var type: String?
        private var line = DecodedLine(draft: EventDraft(id: UUID(integer: 0), type: ""))

        mutating func take(
            _ name: String, _ text: RawSpan, _ value: Range<Int>
        ) throws(EventError) {
            guard seen.insert(name).inserted else {
                throw EventError(.badAttribute, "\(quoted(name)) stands there twice")
            }
            if name == "data" {
                line.draft.data = .json(JSONText.withoutLineBreaks(text.extracting(value)))
                return
            }
            // CloudEvents, JSON format 2.2: an attribute that is null is absent.
            if text.byte(at: value.lowerBound) == UInt8(ascii: "n") { return }
            switch name {
            case "specversion":
                guard try string(name, text, value) == "1.0" else {
                    throw EventError(.badAttribute, "specversion is not \"1.0\"")
                }
                isVersion1 = true
            case "id":
                let given = try string(name, text, value)
                let bytes = Array(given.utf8)
                guard bytes.count == 36,
                    let number = LineText.uuid(bytes.span.bytes, at: 0, acceptUppercase: true),
                    bytes[14] == UInt8(ascii: "4"), "89abAB".utf8.contains(bytes[19])
                else {
                    throw EventError(
                        .badAttribute, "id \(quoted(given)) is not a UUID of version 4")
                }
                id = UUID(integer: number)
            case "source": line.source = try string(name, text, value)
            case "sequence": line.sequence = try number(name, text, value)
            case "position": line.position = try number(name, text, value)
            case "type": type = try string(name, text, value)
            case "subject": line.draft.subject = try string(name, text, value)
            case "partitionkey": line.draft.lane = try string(name, text, value)
            case "time":
                let given = try string(name, text, value)
                guard let time = Timestamp(given) else {
                    throw EventError(
                        .badAttribute, "time \(quoted(given)) is not RFC 3339 with an offset")
                }
                line.draft.time = time
            case "datacontenttype":
                let given = try string(name, text, value)
                line.draft.dataContentType = given == "application/json" ? nil : given
            case "data_base64":
                let given = try string(name, text, value)
                guard Data(base64Encoded: given) != nil else {
                    throw EventError(.badAttribute, "data_base64 is not base 64")
                }
                hasBase64 = true
                line.draft.data = .base64(text.extracting(value).array)
            default:
                try take(extension: name, text, value)
            }
        }

        private mutating func take(
            extension name: String, _ text: RawSpan, _ value: Range<Int>
        ) throws(EventError) {
            let isAllowed = name.utf8.allSatisfy {
                ($0 >= UInt8(ascii: "a") && $0 <= UInt8(ascii: "z")) || $0 &- 0x30 <= 9
            }
            guard isAllowed, (1...20).contains(name.utf8.count) else {
                throw EventError(
                    .badAttribute,
                    "\(quoted(name)) is no attribute name: [a-z0-9], at most 20 characters")
            }
            let first = text.byte(at: value.lowerBound)
            guard first != UInt8(ascii: "{"), first != UInt8(ascii: "[") else {
                throw EventError(
                    .badAttribute,
                    "\(quoted(name)) is neither a string, a number nor a truth value")
            }
            line.draft.extensions.append(
                .init(name: name, json: text.extracting(value).array))
        }

        private func string(
            _ name: String, _ text: RawSpan, _ value: Range<Int>
        ) throws(EventError) -> String {
            guard text.byte(at: value.lowerBound) == UInt8(ascii: "\"") else {
                throw EventError(.badAttribute, "\(name) is not a string")
            }
            let string = JSONText.string(text, value.lowerBound + 1..<value.upperBound - 1)
            guard !string.isEmpty || name == "data_base64" else {
                throw EventError(.badAttribute, "\(name) is empty")
            }
            return string
        }

        private func number(
            _ name: String, _ text: RawSpan, _ value: Range<Int>
        ) throws(EventError) -> UInt64 {
            let given = try string(name, text, value)
            guard given.utf8.count <= 20, given.utf8.allSatisfy({ $0 &- 0x30 <= 9 }),
                let number = UInt64(given)
            else {
                throw EventError(.badAttribute, "\(name) \(quoted(given)) is no decimal number")
            }
            return number
        }

        private func quoted(_ text: String) -> String {
            "\"" + text.prefix(80) + (text.count > 80 ? "…" : "") + "\""
        }

        func finish() throws(EventError) -> DecodedLine {
            guard isVersion1 else { throw EventError(.badAttribute, "specversion is missing") }
            guard let id else { throw EventError(.badAttribute, "id is missing") }
            guard let type else { throw EventError(.badAttribute, "type is missing") }
            guard !(seen.contains("data") && hasBase64) else {
                throw EventError(.badAttribute, "data and data_base64 exclude each other")
            }
            var line = line
            line.draft.id = id
            line.draft.type = type
            return line
        }
    }
}

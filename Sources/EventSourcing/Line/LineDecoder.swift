// Decodes a CloudEvents 1.0 event in JSON format, with its members in any order: lines of the log, lines
// to import, elements of a batch. Spec/format/line.md.

import Foundation
import LogFormat

/// An event as decoded from a line, with its source, sequence and position if the line has them.
package struct DecodedLine: Sendable {
    package var draft: EventDraft
    package var source: String?
    package var sequence: UInt64?
    package var position: UInt64?
}

/// Decodes lines.
package enum LineDecoder {
    /// The purpose of a line, which decides how strict the checks are.
    package enum Purpose {
        /// The line comes from outside, or will be recorded.
        case record
        /// The line will be recorded and shipped later: the array of a batch adds one level of nesting.
        case ship
        /// The line is one of the log: one more level and base64 that is not canonical are read, as the corpus has them.
        case stored

        /// The most nested arrays and objects.
        var levelsMax: Int {
            switch self {
            case .record: JSONScanner.levelsMax
            case .ship: JSONScanner.levelsMax - 1
            case .stored: JSONScanner.levelsMax + 1
            }
        }
    }

    /// Decodes one event.
    ///
    /// - Parameter derivesID: true for events of other producers: one whose id is no UUID gets one that follows from its
    ///   source and id; `sequence` and `position` are left out, whatever they are.
    /// - Throws: `EventError`: `notJSON`, `badAttribute`, `tooLarge`.
    package static func decode(
        _ line: RawSpan, to purpose: Purpose = .record, derivesID: Bool = false
    ) throws(EventError) -> DecodedLine {
        guard line.byteCount <= FormatLimit.lineBytesMax else {
            throw EventError(
                .tooLarge,
                "the event has \(line.byteCount) bytes; at most \(FormatLimit.lineBytesMax) fit")
        }
        return try read(line, nil, purpose, derivesID: derivesID)
    }

    /// Decodes a line of this log.
    ///
    /// - Parameter readsData: true to decode the data by the type's rule, so that the views that fold the
    ///   event need not.
    /// - Throws: `EventError` for a line that no writer of this format writes.
    package static func event(
        _ line: RawSpan, _ prefix: LinePrefix, _ catalogue: EventCatalogue, readsData: Bool = false
    ) throws(EventError) -> Event {
        let (draft, type) = try content(line, prefix, catalogue)
        let decoded =
            if readsData, let rule = catalogue.known.rule(of: type), let json = draft.json {
                rule.decode(json)
            } else {
                nil as AnyDecoded?
            }
        return Event(prefix, draft, type, decoded, line.byteCount)
    }

    private static func content(
        _ line: RawSpan, _ prefix: LinePrefix, _ catalogue: EventCatalogue
    ) throws(EventError) -> (EventDraft, CataloguedType) {
        if let plain = PlainLine(line, prefix, to: .stored) {
            let name = line.extracting(plain.type)
            let type = catalogue.known[name]
            let subject = plain.subject.map { line.extracting($0).text }
            let lane = line.extracting(plain.lane)
            return (
                EventDraft(
                    id: UUID(integer: prefix.id), type: catalogue.known.name(of: type) ?? name.text,
                    subject: subject,
                    // The lane is mostly the subject: one string serves both.
                    lane: subject.flatMap { lane.isEqual(to: $0) ? $0 : nil } ?? lane.text,
                    time: Timestamp(milliseconds: plain.time),
                    data: plain.data.map { .json(line.extracting($0).array) } ?? .none), type
            )
        }
        let draft = try read(line, prefix, .stored).draft
        guard draft.lane != nil, draft.time != nil else {
            throw EventError(.badAttribute, "a stored line has no partitionkey or no time")
        }
        return (draft, catalogue.known[draft.type])
    }

    /// True if a line that `LineEncoder` has written decodes to the event. Allocates nothing.
    ///
    /// - Returns: false also if only `decode(_:to:)` can decide, as with escapes and extensions.
    static func certainlyDecodes(
        _ line: RawSpan, _ prefix: LinePrefix, as draft: EventDraft, to purpose: Purpose
    ) -> Bool {
        guard (try? LinePrefix(line)) == prefix, prefix.id == draft.id.integer,
            draft.extensions.isEmpty, draft.dataContentType == nil,
            let plain = PlainLine(line, prefix, to: purpose),
            line.extracting(plain.type).isEqual(to: draft.type),
            plain.time == draft.time?.milliseconds, let lane = draft.lane,
            line.extracting(plain.lane).isEqual(to: lane)
        else { return false }
        switch (plain.subject, draft.subject) {
        case (nil, nil): break
        case (let range?, let subject?):
            guard line.extracting(range).isEqual(to: subject) else { return false }
        default: return false
        }
        switch (plain.data, draft.data) {
        case (nil, .none): return true
        case (let range?, .json(let json)):
            return range.count == json.count
                && json.withUnsafeBytes { line.matches($0, at: range.lowerBound) }
        default: return false
        }
    }

    /// True if a number is a UUID of RFC 9562 that an event can have as its id. Spec/format/line.md, LINE-9.
    ///
    /// - Parameter isOfLibrary: true for a type of the library, whose ids are random.
    static func isID(_ number: UInt128, isOfLibrary: Bool) -> Bool {
        let version = (number >> 76) & 0xF
        return (number >> 62) & 0b11 == 0b10
            && (isOfLibrary ? version == 4 : (1...8).contains(version))
    }

    /// Decodes the members of a line.
    ///
    /// - Parameter prefix: the line's decoded prefix, if known: it is not decoded again.
    private static func read(
        _ line: RawSpan, _ prefix: LinePrefix?, _ purpose: Purpose, derivesID: Bool = false
    ) throws(EventError) -> DecodedLine {
        var reader = Reader(purpose, derivesID: derivesID)
        // An error in the JSON syntax takes precedence over an earlier error in an attribute.
        var failure: EventError?
        func member(_ scanner: inout JSONScanner, _ name: Range<Int>) throws(JSONError) {
            let value = try scanner.value(line, depth: 1)
            guard failure == nil else { return }
            do throws(EventError) { try reader.readMember(name, line, value) } catch {
                failure = error
            }
        }
        do throws(JSONError) {
            try checkUTF8(line)
            var scanner = JSONScanner(levelsMax: purpose.levelsMax)
            if let prefix {
                reader.readPrefix(prefix)
                scanner.offset = prefix.byteCount - LinePrefix.typeStart.utf8CodeUnitCount
                try scanner.furtherMembers(line, member)
            } else {
                guard scanner.peek(line) == UInt8(ascii: "{") else {
                    throw scanner.fault("an event is a JSON object")
                }
                try scanner.members(line, member)
            }
            try scanner.expectEnd(line)
        } catch {
            throw EventError(.notJSON, "not JSON: \(error.detail) (byte \(error.offset + 1))")
        }
        if let failure { throw failure }
        return try reader.finish()
    }

    static func checkUTF8(_ line: RawSpan) throws(JSONError) {
        guard line.isASCII || String(utf8: line) != nil else {
            throw JSONError(offset: firstFault(of: line), detail: "it is not UTF-8")
        }
    }

    /// The offset of the first byte that is no part of UTF-8.
    private static func firstFault(of line: RawSpan) -> Int {
        var bytes = line.withUnsafeBytes { Array($0) }.makeIterator()
        var parser = Unicode.UTF8.ForwardParser()
        var offset = 0
        while case .valid(let scalar) = parser.parseScalar(from: &bytes) { offset += scalar.count }
        return offset
    }

    /// The attributes with a defined meaning.
    private enum Attribute: UInt16 {
        case specversion = 1
        case id = 2
        case source = 4
        case sequence = 8
        case position = 16
        case type = 32
        case subject = 64
        case lane = 128
        case time = 256
        case dataContentType = 512
        case data = 1_024
        case base64 = 2_048

        /// Nil for any other name.
        init?(_ name: RawSpan) {
            func isNamed(_ text: StaticString) -> Bool { name.matches(text, at: 0) }
            switch name.byteCount {
            case 2 where isNamed("id"): self = .id
            case 4 where isNamed("type"): self = .type
            case 4 where isNamed("time"): self = .time
            case 4 where isNamed("data"): self = .data
            case 6 where isNamed("source"): self = .source
            case 7 where isNamed("subject"): self = .subject
            case 8 where isNamed("sequence"): self = .sequence
            case 8 where isNamed("position"): self = .position
            case 11 where isNamed("specversion"): self = .specversion
            case 11 where isNamed("data_base64"): self = .base64
            case 12 where isNamed("partitionkey"): self = .lane
            case 15 where isNamed("datacontenttype"): self = .dataContentType
            default: return nil
            }
        }
    }

    /// Collects the members of one event.
    private struct Reader {
        private let purpose: Purpose
        private var presentAttributes: UInt16 = 0
        /// The names of extension attributes.
        private var extensionNames: Set<String> = []
        private let derivesID: Bool
        /// The id as it is written.
        private var writtenID: String?
        /// The id if it is written as a UUID.
        private var id: UInt128?
        private var isVersion1 = false
        private var hasBase64 = false
        private var type: String?
        private var line = DecodedLine(draft: EventDraft(id: UUID(integer: 0), type: ""))

        init(_ purpose: Purpose, derivesID: Bool) {
            (self.purpose, self.derivesID) = (purpose, derivesID)
        }

        /// Reads the prefix of a stored line.
        mutating func readPrefix(_ prefix: LinePrefix) {
            for attribute in [Attribute.specversion, .id, .source, .sequence] {
                presentAttributes |= attribute.rawValue
            }
            if !prefix.isOwn { presentAttributes |= Attribute.position.rawValue }
            isVersion1 = true
            id = prefix.id
        }

        mutating func readMember(
            _ name: Range<Int>, _ text: RawSpan, _ value: Range<Int>
        ) throws(EventError) {
            let written = text.extracting(name)
            guard written.offset(of: UInt8(ascii: "\\")) != nil else {
                return try readAttribute(Attribute(written), name, text, value)
            }
            let plain = Array(JSONText.string(text, name).utf8)
            try readAttribute(Attribute(plain.span.bytes), name, text, value)
        }

        private mutating func readAttribute(
            _ attribute: Attribute?, _ name: Range<Int>, _ text: RawSpan, _ value: Range<Int>
        ) throws(EventError) {
            let isNew: Bool
            if let attribute {
                isNew = presentAttributes & attribute.rawValue == 0
                presentAttributes |= attribute.rawValue
            } else {
                isNew = extensionNames.insert(JSONText.string(text, name)).inserted
            }
            func quotedName() -> String { quoted(JSONText.string(text, name)) }
            guard isNew else {
                throw EventError(.badAttribute, "\(quotedName()) occurs twice")
            }
            if attribute == .data {
                line.draft.data = .json(JSONText.withoutLineBreaks(text.extracting(value)))
                return
            }
            // CloudEvents, JSON format 2.2: an attribute that is null is absent.
            if text.byte(at: value.lowerBound) == UInt8(ascii: "n") { return }
            switch attribute {
            case .specversion:
                guard try string("specversion", text, value) == "1.0" else {
                    throw EventError(.badAttribute, "specversion is not \"1.0\"")
                }
                isVersion1 = true
            case .id:
                let given = try string("id", text, value)
                let bytes = Array(given.utf8)
                writtenID = given
                id =
                    bytes.count == 36
                    ? LineText.uuid(bytes.span.bytes, at: 0, acceptUppercase: true) : nil
            case .source: line.source = try string("source", text, value)
            // Another producer's mean something else, and an import keeps neither.
            case .sequence where derivesID, .position where derivesID: break
            case .sequence: line.sequence = try number("sequence", text, value)
            case .position: line.position = try number("position", text, value)
            case .type: type = try string("type", text, value)
            case .subject: line.draft.subject = try string("subject", text, value)
            case .lane:
                line.draft.lane = try string("partitionkey", text, value)
                // The lane is mostly the subject: one string serves both.
                if let subject = line.draft.subject,
                    text.extracting(value.lowerBound + 1..<value.upperBound - 1)
                        .isEqual(to: subject)
                {
                    line.draft.lane = subject
                }
            case .time: line.draft.time = try time(text, value)
            case .dataContentType:
                let given = try string("datacontenttype", text, value)
                line.draft.dataContentType = given == "application/json" ? nil : given
            case .base64:
                let given = try string("data_base64", text, value)
                guard isBase64(given) else {
                    throw EventError(
                        .badAttribute,
                        "data_base64 is not base64 (RFC 4648, section 4, with padding)")
                }
                hasBase64 = true
                line.draft.data = .base64(text.extracting(value).array)
            case .data, nil: try readExtension(JSONText.string(text, name), text, value)
            }
        }

        /// True if a text is canonical base64 of RFC 4648: no white space, whole groups of four, unused
        /// bits zero. A stored line need not be canonical.
        private func isBase64(_ text: String) -> Bool {
            guard let data = Data(base64Encoded: text) else { return false }
            return purpose == .stored || data.base64EncodedString() == text
        }

        /// Checks the id, or derives one.
        private func checkedID(
            of type: String, _ extensions: inout [EventDraft.Extension]
        ) throws(EventError) -> UUID {
            let isOfLibrary = type.hasLibraryPrefix
            if let id, isID(id, isOfLibrary: isOfLibrary) { return UUID(integer: id) }
            guard let written = writtenID ?? id.map({ UUID(integer: $0).text }) else {
                throw EventError(.badAttribute, "id is missing")
            }
            guard derivesID, !isOfLibrary else {
                throw EventError(
                    .badAttribute,
                    "id \(quoted(written)) is not a UUID"
                        + (isOfLibrary
                            ? " of version 4, which events of \(type) have"
                            : " (RFC 9562, versions 1 to 8)"))
            }
            for (name, value) in [(OriginalID.source, line.source), (OriginalID.id, written)] {
                guard !extensionNames.contains(name) else {
                    throw EventError(
                        .badAttribute,
                        "the event already has \(name), which is to keep its original")
                }
                if let value { extensions.append(.init(name: name, string: value)) }
            }
            return OriginalID.derivedID(source: line.source ?? "", id: written)
        }

        private func time(_ text: RawSpan, _ value: Range<Int>) throws(EventError) -> Timestamp {
            if value.count == 26, text.byte(at: value.lowerBound) == UInt8(ascii: "\""),
                let milliseconds = LineText.time(text, at: value.lowerBound + 1)
            {
                return Timestamp(milliseconds: milliseconds)
            }
            let given = try string("time", text, value)
            guard let time = Timestamp(given) else {
                throw EventError(
                    .badAttribute, "time \(quoted(given)) is not RFC 3339 with an offset")
            }
            return time
        }

        private mutating func readExtension(
            _ name: String, _ text: RawSpan, _ value: Range<Int>
        ) throws(EventError) {
            let isAllowed = name.utf8.allSatisfy {
                ($0 >= UInt8(ascii: "a") && $0 <= UInt8(ascii: "z")) || $0 &- 0x30 <= 9
            }
            guard isAllowed, (1...20).contains(name.utf8.count) else {
                throw EventError(
                    .badAttribute,
                    "\(quoted(name)) is not an attribute name: [a-z0-9], at most 20 characters")
            }
            let first = text.byte(at: value.lowerBound)
            guard first != UInt8(ascii: "{"), first != UInt8(ascii: "[") else {
                throw EventError(
                    .badAttribute,
                    "\(quoted(name)) is neither a string, a number nor a boolean")
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
                throw EventError(.badAttribute, "\(name) \(quoted(given)) is not a decimal number")
            }
            return number
        }

        func finish() throws(EventError) -> DecodedLine {
            guard isVersion1 else { throw EventError(.badAttribute, "specversion is missing") }
            guard let type else { throw EventError(.badAttribute, "type is missing") }
            guard !(presentAttributes & Attribute.data.rawValue != 0 && hasBase64) else {
                throw EventError(.badAttribute, "data and data_base64 exclude each other")
            }
            var line = line
            line.draft.id = try checkedID(of: type, &line.draft.extensions)
            line.draft.type = type
            return line
        }
    }
}

private func quoted(_ text: String) -> String {
    "\"" + text.prefix(80) + (text.count > 80 ? "…" : "") + "\""
}

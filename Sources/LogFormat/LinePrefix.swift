// The fixed beginning of every stored line: gives id, source, sequence and position without parsing
// JSON. Spec/format/line.md, LINE-2.

/// The fixed beginning of a stored line.
package struct LinePrefix: Equatable, Sendable {
    /// The event's UUID.
    package var id: UInt128
    /// The incarnation that made the line.
    package var source: UInt128
    /// The line's number under its source.
    package var sequence: UInt64
    /// The line's position in this log. Equal to `sequence` in the log's own lines.
    package var position: Position

    /// True if this log made the line. Its own line has no `position` member, since position and sequence
    /// are equal; a line from another log has one, even if the two are equal.
    package var isOwn: Bool

    /// Creates the prefix of a line from another log.
    package init(id: UInt128, source: UInt128, sequence: UInt64, position: Position) {
        self.id = id
        self.source = source
        self.sequence = sequence
        self.position = position
        isOwn = false
    }

    /// Creates the prefix of a line that this log makes.
    package init(own id: UInt128, source: UInt128, at position: Position) {
        self.init(id: id, source: source, sequence: position.rawValue, position: position)
        isOwn = true
    }

    private static let beforeID: StaticString = "{\"specversion\":\"1.0\",\"id\":\""
    private static let beforeSource: StaticString = "\",\"source\":\"urn:uuid:"
    private static let beforeSequence: StaticString = "\",\"sequence\":\""
    private static let beforePosition: StaticString = "\",\"position\":\""
    private static let beforeType: StaticString = "\",\"type\":\""
    private static let beforeTime: StaticString = ",\"time\":\""

    /// The offset of the id's 36 characters.
    package static let idOffset = beforeID.utf8CodeUnitCount
    /// The offset after the sequence: of the `position` member if there is one, otherwise of `type`.
    private static let sequenceEnd =
        idOffset + 36 + beforeSource.utf8CodeUnitCount + 36 + beforeSequence.utf8CodeUnitCount + 20
    private static let positionBytes = beforePosition.utf8CodeUnitCount + 20

    /// Bytes of the prefix, up to and including `"type":"`.
    package var byteCount: Int {
        Self.sequenceEnd + (isOwn ? 0 : Self.positionBytes) + Self.beforeType.utf8CodeUnitCount
    }

    /// The end of the prefix: the member whose value follows.
    package static let typeStart: StaticString = "\"type\":\""

    /// Appends the prefix up to and including `"type":"`.
    package func append(to line: inout [UInt8]) {
        line.append(Self.beforeID)
        LineText.append(uuid: id, to: &line)
        line.append(Self.beforeSource)
        LineText.append(uuid: source, to: &line)
        line.append(Self.beforeSequence)
        LineText.append(number: sequence, to: &line)
        if !isOwn {
            line.append(Self.beforePosition)
            LineText.append(number: position.rawValue, to: &line)
        }
        line.append(Self.beforeType)
    }

    /// Reads the prefix of a line.
    ///
    /// - Throws: `FormatError` with `badLine` if the line does not begin with a valid prefix.
    package init(_ line: RawSpan) throws(FormatError) {
        var offset = 0
        func expect(_ text: StaticString) throws(FormatError) {
            guard line.matches(text, at: offset) else {
                throw FormatError(.badLine, "a line does not begin as every stored line does")
            }
            offset += text.utf8CodeUnitCount
        }
        func uuid() throws(FormatError) -> UInt128 {
            guard let value = LineText.uuid(line, at: offset, acceptUppercase: false) else {
                throw FormatError(.badLine, "a line has no valid UUID where one belongs")
            }
            offset += 36
            return value
        }
        func number() throws(FormatError) -> UInt64 {
            guard let value = LineText.number(line, at: offset) else {
                throw FormatError(.badLine, "a line has no 20-digit number where one belongs")
            }
            offset += 20
            return value
        }
        try expect(Self.beforeID)
        id = try uuid()
        try expect(Self.beforeSource)
        source = try uuid()
        try expect(Self.beforeSequence)
        sequence = try number()
        if line.matches(Self.beforePosition, at: offset) {
            offset += Self.beforePosition.utf8CodeUnitCount
            position = Position(try number())
            isOwn = false
        } else {
            position = Position(sequence)
            isOwn = true
        }
        try expect(Self.beforeType)
    }

    /// Appends a stored line to `bytes` in the form in which it leaves the log: without its `position`
    /// member, which only a line from another log has. Spec/format/line.md, LINE-3.
    package func appendExported(_ line: RawSpan, to bytes: inout [UInt8]) {
        guard !isOwn else { return bytes.append(contentsOf: line) }
        bytes.append(contentsOf: line.extracting(0..<Self.sequenceEnd))
        bytes.append(
            contentsOf: line.extracting(Self.sequenceEnd + Self.positionBytes..<line.byteCount))
    }

    /// The time of a stored line in milliseconds since 1970, or nil if it has none.
    ///
    /// The first `,"time":"` of a line is the envelope's: inside a string a quotation mark is
    /// escaped, members before it are scalars, and `data` comes last.
    package static func time(of line: RawSpan) -> Int64? {
        var offset = idOffset
        while let comma = line.offset(of: UInt8(ascii: ","), from: offset) {
            if line.matches(beforeTime, at: comma) {
                return LineText.time(line, at: comma + beforeTime.utf8CodeUnitCount)
            }
            offset = comma + 1
        }
        return nil
    }
}

// The fixed beginning of every stored line: where it can be told, without parsing JSON, which event
// it is and where it belongs. Spec/line.md, LINE-2.

/// The fixed beginning of a stored line.
package struct LinePrefix: Equatable, Sendable {
    /// The event's UUID.
    package var id: UInt128
    /// The incarnation that made the line.
    package var source: UInt128
    /// The line's number under its source.
    package var sequence: UInt64
    /// The line's place in this log. Equal to `sequence` for lines made here.
    package var position: Position

    /// Whether this log made the line. Such a line's position is its sequence, and it carries no
    /// `position` member; a line from elsewhere always does, even if the numbers are the same.
    package var isOwn: Bool

    /// The prefix of a line from elsewhere.
    package init(id: UInt128, source: UInt128, sequence: UInt64, position: Position) {
        self.id = id
        self.source = source
        self.sequence = sequence
        self.position = position
        isOwn = false
    }

    /// The prefix of a line made here.
    package init(own id: UInt128, source: UInt128, at position: Position) {
        self.init(id: id, source: source, sequence: position.rawValue, position: position)
        isOwn = true
    }

    private static let beforeID = Array("{\"specversion\":\"1.0\",\"id\":\"".utf8)
    private static let beforeSource = Array("\",\"source\":\"urn:uuid:".utf8)
    private static let beforeSequence = Array("\",\"sequence\":\"".utf8)
    private static let beforePosition = Array("\",\"position\":\"".utf8)
    private static let beforeType = Array("\",\"type\":\"".utf8)
    private static let beforeTime = Array(",\"time\":\"".utf8)

    /// Where the id's 36 characters begin in every line.
    package static let idOffset = beforeID.count

    /// Appends the prefix up to and including `"type":"`.
    package func append(to line: inout [UInt8]) {
        line.append(contentsOf: Self.beforeID)
        LineText.append(uuid: id, to: &line)
        line.append(contentsOf: Self.beforeSource)
        LineText.append(uuid: source, to: &line)
        line.append(contentsOf: Self.beforeSequence)
        LineText.append(number: sequence, to: &line)
        if !isOwn {
            line.append(contentsOf: Self.beforePosition)
            LineText.append(number: position.rawValue, to: &line)
        }
        line.append(contentsOf: Self.beforeType)
    }

    /// Reads the prefix of a line.
    ///
    /// - Throws: `FormatError` with `badLine` where the line begins otherwise.
    package init(_ line: RawSpan) throws(FormatError) {
        var offset = 0
        func expect(_ text: [UInt8]) throws(FormatError) {
            guard LineText.matches(line, at: offset, text) else {
                throw FormatError(.badLine, "a line does not begin as every stored line does")
            }
            offset += text.count
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
        if LineText.matches(line, at: offset, Self.beforePosition) {
            offset += Self.beforePosition.count
            position = Position(try number())
            isOwn = false
        } else {
            position = Position(sequence)
            isOwn = true
        }
        try expect(Self.beforeType)
    }

    /// Appends a stored line to `bytes` as it leaves the log: without its place there, if it came from
    /// elsewhere; else as it is. Spec/line.md, LINE-3.
    package func appendExported(_ line: RawSpan, to bytes: inout [UInt8]) {
        guard !isOwn else { return bytes.append(contentsOf: line) }
        let start =
            Self.beforeID.count + 36 + Self.beforeSource.count + 36 + Self.beforeSequence.count + 20
        let end = start + Self.beforePosition.count + 20
        bytes.append(contentsOf: line.extracting(0..<start))
        bytes.append(contentsOf: line.extracting(end..<line.byteCount))
    }

    /// The time of a stored line in milliseconds since 1970, or nil where it has none.
    ///
    /// The first `,"time":"` of a line is the envelope's: inside a string a quotation mark is
    /// escaped, members before it are scalars, and `data` comes last.
    package static func time(of line: RawSpan) -> Int64? {
        let last = line.byteCount - beforeTime.count - 24
        var offset = idOffset
        while offset <= last {
            if line.byte(at: offset) == UInt8(ascii: ","),
                LineText.matches(line, at: offset, beforeTime)
            {
                return LineText.time(line, at: offset + beforeTime.count)
            }
            offset += 1
        }
        return nil
    }
}

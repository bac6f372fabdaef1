// The fast path for nearly all lines: members in the order in which LineEncoder writes them, no escapes in
// strings, no extensions. Members need not be found by name. Spec/format/line.md, LINE-1.

import LogFormat

/// The members of a plain line, as ranges of its bytes.
package struct PlainLine {
    package let type: Range<Int>
    package let subject: Range<Int>?
    package let lane: Range<Int>
    /// Milliseconds since 1970.
    package let time: Int64
    package let data: Range<Int>?

    /// Parses and checks all bytes after the prefix: JSON, UTF-8, the order of the members.
    ///
    /// - Returns: nil for other lines, which `LineDecoder.decode(_:to:)` decodes or refuses.
    package init?(_ line: RawSpan, _ prefix: LinePrefix, to purpose: LineDecoder.Purpose) {
        guard line.byteCount <= FormatLimit.lineBytesMax,
            (try? LineDecoder.checkUTF8(line)) != nil
        else { return nil }
        var scanner = JSONScanner(at: prefix.byteCount - 1, levelsMax: purpose.levelsMax)
        func text() -> Range<Int>? {
            guard let range = try? scanner.string(line), !range.isEmpty, !scanner.hasEscapes
            else {
                return nil
            }
            return range
        }
        func skip(_ text: StaticString) -> Bool {
            guard line.matches(text, at: scanner.offset) else { return false }
            scanner.offset += text.utf8CodeUnitCount
            return true
        }
        guard let type = text(),
            LineDecoder.isID(
                prefix.id,
                isOfLibrary: line.matches(LibraryNames.prefix, at: type.lowerBound))
        else { return nil }
        self.type = type
        if skip(",\"subject\":") {
            guard let range = text() else { return nil }
            subject = range
        } else {
            subject = nil
        }
        guard skip(",\"partitionkey\":"), let lane = text(), skip(",\"time\":\""),
            let time = LineText.time(line, at: scanner.offset)
        else { return nil }
        (self.lane, self.time) = (lane, time)
        scanner.offset += 24
        guard skip("\"") else { return nil }
        if skip(",\"data\":") {
            guard let range = try? scanner.value(line, depth: 1), !scanner.hasLineBreaks else {
                return nil
            }
            data = range
        } else {
            data = nil
        }
        guard skip("}"), scanner.offset == line.byteCount else { return nil }
    }
}

// Lines and their JSON: decoding, encoding and decoding again gives the same value. Spec/format/line.md.

import EventSourcing
import LogFormat

struct LineCheck {
    func check(_ bytes: [UInt8]) throws {
        let text = bytes.span.bytes
        _ = LinePrefix.time(of: text)
        try checkCanonical(bytes)
        if let prefix = try? LinePrefix(text) {
            var encodedPrefix: [UInt8] = []
            prefix.append(to: &encodedPrefix)
            try expect(
                bytes.starts(with: encodedPrefix), "a prefix changes when it is written and read")
            var exported: [UInt8] = []
            prefix.appendExported(text, to: &exported)
            let own = LinePrefix(
                own: prefix.id, source: prefix.source, at: Position(prefix.sequence))
            try expect(
                (try? LinePrefix(exported.span.bytes)) == own,
                "an exported line does not begin as in the log that created it")
        }
        guard let decoded = try? LineDecoder.decode(text) else { return }
        var draft = decoded.draft
        try expect(draft.inLineForm == draft, "a decoded event is not in line form")
        draft.lane = draft.lane ?? "a"
        draft.time = draft.time ?? Timestamp(milliseconds: 0)
        let prefix = LinePrefix(
            id: draft.id.integer, source: 7, sequence: decoded.sequence ?? 1,
            position: Position(decoded.position ?? 1))
        var line: [UInt8] = []
        LineEncoder.append(draft, prefix, to: &line)
        try expect(
            line.last == 0x0A && !line.dropLast().contains(0x0A), "a line has a line break inside")
        line.removeLast()
        let reread: DecodedLine
        do throws(EventError) {
            reread = try LineDecoder.decode(line.span.bytes)
        } catch { throw BrokenProperty(description: "a written line is refused: \(error)") }
        try expect(reread.draft == draft, "an event changes when it is written and read")
        let writtenPrefix = try? LinePrefix(line.span.bytes)
        try expect(writtenPrefix == prefix, "a written line has another prefix")
        try expect(
            LinePrefix.time(of: line.span.bytes) == draft.time?.milliseconds,
            "a written line has another time")
    }

    /// Checks that both JSON readers accept the same texts.
    private func checkCanonical(_ bytes: [UInt8]) throws {
        let value = try? JSONValue(bytes.span.bytes)
        let canonical = try? JSONCanonical.text(bytes.span.bytes)
        try expect(
            (value == nil) == (canonical == nil), "only one of the JSON readers accepts a text")
    }
}

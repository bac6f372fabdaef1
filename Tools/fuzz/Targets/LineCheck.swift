// Lines, and JSON below them: what is read means the same after it was written. Spec/format/line.md.

import EventSourcing
import LogFormat

struct LineCheck {
    func check(_ bytes: [UInt8]) throws {
        let text = bytes.span.bytes
        _ = LinePrefix.time(of: text)
        try checkCanonical(bytes)
        if let prefix = try? LinePrefix(text) {
            var again: [UInt8] = []
            prefix.append(to: &again)
            try expect(bytes.starts(with: again), "a prefix is another after it was written")
            var exported: [UInt8] = []
            prefix.appendExported(text, to: &exported)
            let own = LinePrefix(
                own: prefix.id, source: prefix.source, at: Position(prefix.sequence))
            try expect(
                (try? LinePrefix(exported.span.bytes)) == own,
                "a line that leaves the log does not begin as one that was made there")
        }
        guard let decoded = try? LineDecoder.decode(text) else { return }
        var draft = decoded.draft
        try expect(draft.inLineForm == draft, "what was read is not in line form")
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
        let again: DecodedLine
        do throws(EventError) {
            again = try LineDecoder.decode(line.span.bytes)
        } catch { throw BrokenProperty(description: "a written line is refused: \(error)") }
        try expect(again.draft == draft, "an event is another after it was written")
        let found = try? LinePrefix(line.span.bytes)
        try expect(found == prefix, "a written line has another prefix")
        try expect(
            LinePrefix.time(of: line.span.bytes) == draft.time?.milliseconds,
            "a written line has another time")
    }

    /// Both readers of JSON take the same texts.
    private func checkCanonical(_ bytes: [UInt8]) throws {
        let value = try? JSONValue(bytes.span.bytes)
        let canonical = try? JSONCanonical.text(bytes.span.bytes)
        try expect(
            (value == nil) == (canonical == nil), "one reader of JSON takes what the other refuses")
    }
}

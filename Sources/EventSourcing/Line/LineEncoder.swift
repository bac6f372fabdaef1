// Encodes an event as a line, with its members in the order of the format. Spec/format/line.md, LINE-1.

import LogFormat

/// Encodes lines.
package enum LineEncoder {
    /// Appends the line of an event with its newline.
    ///
    /// - Parameter draft: the event; its lane and time must be set.
    package static func append(
        _ draft: EventDraft, _ prefix: LinePrefix, to line: inout [UInt8]
    ) {
        precondition(draft.lane != nil && draft.time != nil, "a line has a lane and a time")
        prefix.append(to: &line)
        // The prefix ends with the type's opening quotation mark, which JSONText.append writes again.
        line.removeLast()
        JSONText.append(draft.type, to: &line)
        appendMember(",\"subject\":", draft.subject, to: &line)
        appendMember(",\"partitionkey\":", draft.lane, to: &line)
        line.append(",\"time\":\"")
        LineText.append(time: draft.time?.milliseconds ?? 0, to: &line)
        line.append(UInt8(ascii: "\""))
        for attribute in draft.extensions {
            line.append(contentsOf: Array(",\"\(attribute.name)\":".utf8))
            line.append(contentsOf: attribute.json)
        }
        appendMember(",\"datacontenttype\":", draft.dataContentType, to: &line)
        switch draft.data {
        case .none: break
        case .json(let json):
            line.append(",\"data\":")
            line.append(contentsOf: json)
        case .base64(let json):
            line.append(",\"data_base64\":")
            line.append(contentsOf: json)
        }
        line.append(UInt8(ascii: "}"))
        line.append(UInt8(ascii: "\n"))
    }

    /// Appends a member, unless its value is nil.
    ///
    /// - Parameter start: the comma, the name and the colon.
    private static func appendMember(
        _ start: StaticString, _ value: String?, to line: inout [UInt8]
    ) {
        guard let value else { return }
        line.append(start)
        JSONText.append(value, to: &line)
    }
}

// A recorded event in the model, and its line in the log, byte for byte, written without the library's
// encoder. Spec/format/line.md.

import DaybookOffline
import Foundation

/// A draft with its content in the model and its expected refusal.
package struct ModelDraft: Sendable {
    /// The draft that the store gets.
    package var draft: EventDraft
    package var fact = Fact.other
    /// The code with which the store must refuse the draft; nil if it is valid.
    package var refusal: EventError.Code? {
        get { fault ?? (fact.containsNUL ? .invalidData : nil) }
        set { fault = newValue }
    }
    private var fault: EventError.Code?

    init(draft: EventDraft, fact: Fact = .other, refusal: EventError.Code? = nil) {
        self.draft = draft
        self.fact = fact
        fault = refusal
    }

    var type: Text { Text(draft.type) }
    var isTrip: Bool { draft.type == TripPlanned.type }
}

/// One line of the log.
package struct ModelLine: Sendable {
    let id: UUID
    let position: UInt64
    let source: UUID
    let draft: ModelDraft
    let subject: Text?
    let lane: Text
    let time: Int64
    /// The line without its newline.
    let text: [UInt8]
    /// The time at which compaction removed the line; nil if it is stored.
    var removedAt: Int64?

    init(
        _ draft: ModelDraft, position: UInt64, source: UUID, subject: Text?, lane: Text, time: Int64
    ) {
        id = draft.draft.id
        self.position = position
        self.source = source
        self.draft = draft
        self.subject = subject
        self.lane = lane
        self.time = time
        text = Self.text(draft.draft, position, source, subject, lane, time)
    }

    var lwwTimestamp: ModelLWWTimestamp {
        ModelLWWTimestamp(time: time, source: source.uuidString, sequence: position)
    }

    private static func text(
        _ draft: EventDraft, _ position: UInt64, _ source: UUID, _ subject: Text?, _ lane: Text,
        _ time: Int64
    ) -> [UInt8] {
        let number = String(position)
        var text = "{\"specversion\":\"1.0\",\"id\":\"\(draft.id.uuidString.lowercased())\""
        text += ",\"source\":\"urn:uuid:\(source.uuidString.lowercased())\",\"sequence\":\""
        text += String(repeating: "0", count: 20 - number.count) + number + "\""
        text += ",\"type\":" + Spelling.minimallyEscaped(Text(draft.type))
        if let subject { text += ",\"subject\":" + Spelling.minimallyEscaped(subject) }
        text += ",\"partitionkey\":" + Spelling.minimallyEscaped(lane)
        text += ",\"time\":\"\(Self.time(time))\""
        var bytes = Array(text.utf8)
        for attribute in draft.extensions {
            bytes += Array(",\"\(attribute.name)\":".utf8) + attribute.json
        }
        if let type = draft.dataContentType, type != "application/json" {
            bytes += Array((",\"datacontenttype\":" + Spelling.minimallyEscaped(Text(type))).utf8)
        }
        switch draft.data {
        case .none: break
        case .json(let json):
            // The encoder removes line breaks between tokens; strings have none.
            bytes += Array(",\"data\":".utf8)
            bytes +=
                json.contains(10) || json.contains(13) ? json.filter { $0 != 10 && $0 != 13 } : json
        case .base64(let json): bytes += Array(",\"data_base64\":".utf8) + json
        }
        return bytes + Array("}".utf8)
    }

    /// `2026-02-22T10:30:14.425Z`, by the C library's calendar.
    static func time(_ milliseconds: Int64) -> String {
        let (seconds, fraction) = (milliseconds / 1_000, milliseconds % 1_000)
        var time = time_t(fraction < 0 ? seconds - 1 : seconds)
        var parts = tm()
        gmtime_r(&time, &parts)
        func digits(_ number: Int, _ count: Int) -> String {
            let text = String(number)
            return String(repeating: "0", count: max(0, count - text.count)) + text
        }
        return digits(Int(parts.tm_year) + 1_900, 4) + "-" + digits(Int(parts.tm_mon) + 1, 2) + "-"
            + digits(Int(parts.tm_mday), 2) + "T" + digits(Int(parts.tm_hour), 2) + ":"
            + digits(Int(parts.tm_min), 2) + ":" + digits(Int(parts.tm_sec), 2) + "."
            + digits(Int(fraction < 0 ? fraction + 1_000 : fraction), 3) + "Z"
    }
}

/// The LWW timestamp in the model.
struct ModelLWWTimestamp: Hashable, Comparable, Sendable {
    var time: Int64
    var source: String
    var sequence: UInt64

    static func < (lhs: ModelLWWTimestamp, rhs: ModelLWWTimestamp) -> Bool {
        (lhs.time, lhs.source, lhs.sequence) < (rhs.time, rhs.source, rhs.sequence)
    }
}

// A recorded event in the model, and the line that the log must hold for it, byte for byte, written
// without the library's encoder. Spec/format/line.md.

import DaybookOffline
import Foundation

/// What an event is recorded with: everything but its place.
package struct ModelDraft: Sendable {
    /// What the store is given.
    package var draft: EventDraft
    package var fact = Fact.other
    /// With what it must be refused; nil if there is nothing wrong with it.
    package var refusal: EventError.Code? {
        get { fault ?? (fact.hasZero ? .invalidData : nil) }
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
    /// When compaction took the line out.
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

    var stamp: ModelStamp {
        ModelStamp(time: time, source: source.uuidString, sequence: position)
    }

    private static func text(
        _ draft: EventDraft, _ position: UInt64, _ source: UUID, _ subject: Text?, _ lane: Text,
        _ time: Int64
    ) -> [UInt8] {
        let number = String(position)
        var text = "{\"specversion\":\"1.0\",\"id\":\"\(draft.id.uuidString.lowercased())\""
        text += ",\"source\":\"urn:uuid:\(source.uuidString.lowercased())\",\"sequence\":\""
        text += String(repeating: "0", count: 20 - number.count) + number + "\""
        text += ",\"type\":" + Spelling.least(Text(draft.type))
        if let subject { text += ",\"subject\":" + Spelling.least(subject) }
        text += ",\"partitionkey\":" + Spelling.least(lane)
        text += ",\"time\":\"\(Self.time(time))\""
        var bytes = Array(text.utf8)
        for attribute in draft.extensions {
            bytes += Array(",\"\(attribute.name)\":".utf8) + attribute.json
        }
        if let type = draft.dataContentType, type != "application/json" {
            bytes += Array((",\"datacontenttype\":" + Spelling.least(Text(type))).utf8)
        }
        switch draft.data {
        case .none: break
        case .json(let json):
            // Line breaks between tokens go; in strings there are none.
            bytes += Array(",\"data\":".utf8)
            bytes +=
                json.contains(10) || json.contains(13) ? json.filter { $0 != 10 && $0 != 13 } : json
        case .base64(let json): bytes += Array(",\"data_base64\":".utf8) + json
        }
        return bytes + Array("}".utf8)
    }

    /// `2026-02-22T10:30:14.425Z`, by the C library's calendar.
    static func time(_ milliseconds: Int64) -> String {
        let (seconds, rest) = (milliseconds / 1_000, milliseconds % 1_000)
        var time = time_t(rest < 0 ? seconds - 1 : seconds)
        var parts = tm()
        gmtime_r(&time, &parts)
        func digits(_ number: Int, _ count: Int) -> String {
            let text = String(number)
            return String(repeating: "0", count: max(0, count - text.count)) + text
        }
        return digits(Int(parts.tm_year) + 1_900, 4) + "-" + digits(Int(parts.tm_mon) + 1, 2) + "-"
            + digits(Int(parts.tm_mday), 2) + "T" + digits(Int(parts.tm_hour), 2) + ":"
            + digits(Int(parts.tm_min), 2) + ":" + digits(Int(parts.tm_sec), 2) + "."
            + digits(Int(rest < 0 ? rest + 1_000 : rest), 3) + "Z"
    }
}

/// What decides between two events.
struct ModelStamp: Hashable, Comparable, Sendable {
    var time: Int64
    var source: String
    var sequence: UInt64

    static func < (lhs: ModelStamp, rhs: ModelStamp) -> Bool {
        (lhs.time, lhs.source, lhs.sequence) < (rhs.time, rhs.source, rhs.sequence)
    }
}

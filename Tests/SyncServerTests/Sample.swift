// Events for the server's tests, in the form that a client sends.

import EventSourcing
import Foundation

/// One event to send.
struct Sample {
    var id = UUID()
    var source = Sample.device
    var sequence: UInt64
    var type = "daybook.city.saved"
    var subject = "lisbon"
    var lane: String? = "city:ana:lisbon"
    var time: String? = "2026-02-22T10:30:14.425Z"
    var base: UUID?
    var data = #"{"userId":"ana","cityId":"lisbon"}"#

    static let device = UUID()

    /// The event as a stored line, without its newline.
    var line: String {
        var line =
            "{\"specversion\":\"1.0\",\"id\":\"\(id.text)\",\"source\":\"urn:uuid:\(source.text)\""
        let number = String(sequence)
        line += ",\"sequence\":\"\(String(repeating: "0", count: 20 - number.count))\(number)\""
        line += ",\"type\":\"\(type)\",\"subject\":\"\(subject)\""
        if let lane { line += ",\"partitionkey\":\"\(lane)\"" }
        if let time { line += ",\"time\":\"\(time)\"" }
        if let base { line += ",\"baseid\":\"\(base.text)\"" }
        return line + ",\"data\":\(data)}"
    }

    static func note(
        _ kind: String, _ note: String, _ sequence: UInt64, base: UUID? = nil, text: String = "x"
    ) -> Sample {
        let data =
            switch kind {
            case "added":
                #"{"noteId":"\#(note)","cityId":"lisbon","content":"\#(text)","createdBy":"ana"}"#
            case "updated": #"{"noteId":"\#(note)","content":"\#(text)","updatedBy":"ana"}"#
            default: #"{"noteId":"\#(note)","deletedBy":"ana"}"#
            }
        return Sample(
            sequence: sequence, type: "daybook.note.\(kind)", subject: note, lane: "note:\(note)",
            base: base, data: data)
    }

    static func cities(_ count: Int, from first: UInt64 = 1) -> [Sample] {
        (first..<first + UInt64(count)).map { number in
            Sample(
                sequence: number, subject: "city-\(number)", lane: "city:ana:city-\(number)",
                data: #"{"userId":"ana","cityId":"city-\#(number)"}"#)
        }
    }
}

extension Sequence<Sample> {
    /// The body of a post.
    var body: Data { Data("[\(map(\.line).joined(separator: ","))]".utf8) }
}

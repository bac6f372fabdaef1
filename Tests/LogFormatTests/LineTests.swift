// The beginning of a line and its texts of fixed width.

import DaybookTestKit
import Foundation
import LogFormat
import TestSupport
import Testing

@Suite struct LineTests {
    @Test(.verifies("LINE-2", "LINE-3"))
    func `a prefix round-trips, own or foreign`() throws {
        try Property.check("prefix", runs: 500) { choices in
            let id = UInt128(choices.bits()) << 64 | UInt128(choices.bits())
            let source = UInt128(choices.bits()) << 64 | UInt128(choices.bits())
            let sequence = choices.bits()
            let isOwn = choices.bool()
            let position = choices.bool() ? sequence : choices.bits()
            let prefix =
                isOwn
                ? LinePrefix(own: id, source: source, at: Position(sequence))
                : LinePrefix(
                    id: id, source: source, sequence: sequence, position: Position(position))
            var line: [UInt8] = []
            prefix.append(to: &line)
            try #require(try LinePrefix(line.span.bytes) == prefix)
            let text = String(decoding: line, as: UTF8.self)
            try #require(text.contains(#""position":"#) == !isOwn)
            // Nothing shorter is a prefix.
            for count in 0..<line.count {
                try #require((try? LinePrefix(Array(line[..<count]).span.bytes)) == nil)
            }
        }
    }

    @Test(.verifies("LINE-2")) func `the prefix of a line has these bytes`() {
        var line: [UInt8] = []
        let prefix = LinePrefix(
            id: 0x0123_4567_89AB_CDEF_0123_4567_89AB_CDEF, source: 1, sequence: 2,
            position: Position(13))
        prefix.append(to: &line)
        #expect(
            String(decoding: line, as: UTF8.self)
                == #"{"specversion":"1.0","id":"01234567-89ab-cdef-0123-456789abcdef","#
                + #""source":"urn:uuid:00000000-0000-0000-0000-000000000001","#
                + #""sequence":"00000000000000000002","position":"00000000000000000013","type":""#)
    }

    @Test(
        .verifies("LINE-2"),
        arguments: [
            ("\"1.0\"", "\"1.1\""), ("abcdef", "ABCDEF"), ("urn:uuid", "urn:uuie"),
            ("00000000000000000002", "00000000000000000x02"), ("\"type\"", "\"kind\""),
            ("00000000000000000002", "99999999999999999999"), ("{\"spec", " {\"spec"),
        ])
    func `a line with another beginning is refused`(what: String, with: String) {
        var line: [UInt8] = []
        let prefix = LinePrefix(
            id: 0x0123_4567_89AB_CDEF_0123_4567_89AB_CDEF, source: 1, sequence: 2,
            position: Position(13))
        prefix.append(to: &line)
        let text = String(decoding: line, as: UTF8.self).replacing(what, with: with)
        let error = #expect(throws: FormatError.self) {
            try LinePrefix(Array(text.utf8).span.bytes)
        }
        #expect(error?.code == .badLine)
    }

    @Test(.verifies("LINE-2"))
    func `the time of a line is the envelope's, whatever strings and data hold`() {
        let text =
            #"{"specversion":"1.0","id":"01234567-89ab-cdef-0123-456789abcdef","#
            + #""subject":"\",\"time\":\"1999-01-01T00:00:00.000Z","#
            + #""time":"2026-02-22T10:30:14.425Z","data":{"a":1,"time":"1999-01-01T00:00:00.000Z"}}"#
        #expect(LinePrefix.time(of: Array(text.utf8).span.bytes) == 1_771_756_214_425)
        #expect(LinePrefix.time(of: [UInt8]().span.bytes) == nil)
        #expect(LinePrefix.time(of: Array("{}".utf8).span.bytes) == nil)
    }

    @Test(.verifies("LINE-1")) func `a time reads and writes as Foundation says`() throws {
        let format = Date.ISO8601FormatStyle(includingFractionalSeconds: true)
        try Property.check("time", runs: 3_000) { choices in
            // From the year 1 to 9999; Foundation's calendar is Julian before 1582.
            let milliseconds = Int64(choices.int(in: -12_219_292_800_000...253_402_300_799_999))
            var bytes: [UInt8] = []
            LineText.append(time: milliseconds, to: &bytes)
            let text = String(decoding: bytes, as: UTF8.self)
            try #require(LineText.time(bytes.span.bytes, at: 0) == milliseconds)
            let date = try format.parse(text)
            let expected = (date.timeIntervalSince1970 * 1_000).rounded()
            try #require(Double(milliseconds) == expected, "\(text)")
        }
    }

    @Test(.verifies("LINE-1")) func `the first and the last time of a line are written and read`() {
        for (milliseconds, text) in [
            (-62_167_219_200_000, "0000-01-01T00:00:00.000Z"),
            (253_402_300_799_999, "9999-12-31T23:59:59.999Z"),
        ] as [(Int64, String)] {
            var bytes: [UInt8] = []
            LineText.append(time: milliseconds, to: &bytes)
            #expect(String(decoding: bytes, as: UTF8.self) == text)
            #expect(LineText.time(bytes.span.bytes, at: 0) == milliseconds)
        }
    }

    @Test(.verifies("LINE-1"))
    func `a time is read like its characters one by one, with any byte replaced`() {
        /// The time of a text by its digits and separators.
        func reference(_ text: [UInt8]) -> Int64? {
            let separators: [Int: Character] = [
                4: "-", 7: "-", 10: "T", 13: ":", 16: ":", 19: ".", 23: "Z",
            ]
            var numbers = [0]
            for (index, byte) in text.enumerated() {
                if let separator = separators[index] {
                    guard byte == separator.asciiValue else { return nil }
                    numbers.append(0)
                } else {
                    guard (48...57).contains(byte) else { return nil }
                    numbers[numbers.count - 1] = numbers[numbers.count - 1] * 10 + Int(byte) - 48
                }
            }
            guard
                let day = Calendar.day(year: numbers[0], month: numbers[1], day: numbers[2]),
                numbers[3] < 24, numbers[4] < 60, numbers[5] < 60
            else { return nil }
            let seconds = numbers[3] * 3_600 + numbers[4] * 60 + numbers[5]
            return day * 86_400_000 + Int64(seconds * 1_000 + numbers[6])
        }
        for text in ["2026-02-22T10:30:14.425Z", "9999-12-31T23:59:59.999Z"] {
            for index in 0..<24 {
                for byte in UInt8.min ... .max {
                    var changed = Array(text.utf8)
                    changed[index] = byte
                    #expect(LineText.time(changed.span.bytes, at: 0) == reference(changed))
                }
            }
        }
    }

    @Test(
        .verifies("LINE-1"),
        arguments: [
            0, 1, 99_999_999, 100_000_000, 100_000_001, 9_999_999_999_999_999,
            10_000_000_000_000_000, 10_000_000_000_000_001, UInt64.max,
        ])
    func `a number is written with 20 digits`(number: UInt64) {
        var bytes: [UInt8] = []
        LineText.append(number: number, to: &bytes)
        let digits = String(number)
        let text = String(repeating: "0", count: 20 - digits.count) + digits
        #expect(String(decoding: bytes, as: UTF8.self) == text)
        #expect(LineText.number(bytes.span.bytes, at: 0) == number)
    }

    @Test func `every day of four centuries follows the one before`() throws {
        var day = try #require(Calendar.day(year: 1800, month: 1, day: 1))
        for year in 1800..<2200 {
            for month in 1...12 {
                for dayOfMonth in 1...31 {
                    guard let found = Calendar.day(year: year, month: month, day: dayOfMonth)
                    else { continue }
                    #expect(found == day)
                    #expect(Calendar.date(ofDay: day) == (year, month, dayOfMonth))
                    day += 1
                }
            }
        }
        #expect(Calendar.day(year: 2200, month: 1, day: 1) == day)
    }

    @Test(
        .verifies("LINE-1"),
        arguments: [
            "2026-02-29T10:30:14.425Z", "2026-13-01T10:30:14.425Z", "2026-00-01T10:30:14.425Z",
            "2026-01-00T10:30:14.425Z", "2026-01-01T24:00:00.000Z", "2026-01-01T23:60:00.000Z",
            "2026-01-01T23:59:60.000Z", "2026-01-01 23:59:59.000Z", "2026-01-01T23:59:59.000",
            "2026-01-01T23:59:59.000z", "1900-02-29T00:00:00.000Z", "+026-01-01T23:59:59.000Z",
        ])
    func `a time that does not exist is refused`(text: String) {
        #expect(LineText.time(Array(text.utf8).span.bytes, at: 0) == nil)
    }
}

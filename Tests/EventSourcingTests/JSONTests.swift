// The JSON reader: which texts it accepts, which it refuses, and when two values are equal.

import DaybookTestKit
import EventSourcing
import TestSupport
import Testing

@Suite struct JSONTests {
    private func parse(_ text: String) -> JSONValue? {
        try? JSONValue(Array(text.utf8).span.bytes)
    }

    @Test(arguments: [
        "{}", "[]", "null", "true", "false", "0", "-0", "1.5e-3", "\"\"", " [ 1 , 2 ] ",
        #"{"a":{"b":[null,"\u00e9\n"]}}"#, "123456789012345678901234567890",
    ])
    func `valid texts are read`(text: String) { #expect(parse(text) != nil) }

    @Test(arguments: [
        "", "{", "}", "[1,]", "{\"a\":1,}", "{a:1}", "01", "1.", ".5", "+1", "1e", "nul", "tru",
        "\"", "\"\\x\"", "\"\\u12g4\"", "\"a\nb\"", "[1 2]", "{} {}", "'a'", "NaN", "\u{FEFF}{}",
    ])
    func `anything else is refused`(text: String) { #expect(parse(text) == nil) }

    @Test(.verifies("LINE-2")) func `nesting is followed to its limit and refused beyond`() {
        func nested(_ levels: Int, _ inner: String = "") -> String {
            String(repeating: "[", count: levels) + inner + String(repeating: "]", count: levels)
        }
        for inner in ["", "1", "null", "\"\""] {
            #expect(parse(nested(64, inner)) != nil)
            #expect(parse(nested(65, inner)) == nil)
            func canonical(_ levels: Int) -> [UInt8]? {
                try? JSONCanonical.text(Array(nested(levels, inner).utf8).span.bytes)
            }
            #expect(canonical(64) != nil)
            #expect(canonical(65) == nil)
        }
        #expect(parse(nested(63, "{}")) != nil)
        #expect(parse(nested(64, "{}")) == nil)
        let deeper = String(repeating: "[", count: 100_000)
        #expect(parse(deeper) == nil)
    }

    @Test(
        .verifies("LINE-6"),
        arguments: [
            ("1", "1.0"), ("100", "1e2"), ("0.10", "1E-1"), ("-0", "0"), ("1e0", "1"),
            (#""\u0041""#, #""A""#), (#""\ud83d\ude00""#, "\"😀\""), (#""\/""#, "\"/\""),
            (#"{"a":1,"b":2}"#, #"{ "b":2.0, "a":1 }"#),
            ("1e999999999999999999", "10e999999999999999998"),
            ("1e1000000000000000000", "10e999999999999999999"),
            ("1e9223372036854775808", "100e9223372036854775806"),
            ("-0.001e10000000000000000000", "-1.00e+9999999999999999997"),
            ("1e-10000000000000000000", "0.01e-9999999999999999998"),
            ("1e-9999999999999999999", "10e-10000000000000000000"),
            ("12.5e00000000000000000000003", "12500"), ("0e99999999999999999999", "0"),
        ])
    func `values with the same meaning are equal`(a: String, b: String) {
        #expect(parse(a) == parse(b))
        #expect(canonical(a) == canonical(b))
    }

    private func canonical(_ text: String) -> String? {
        (try? JSONCanonical.text(Array(text.utf8).span.bytes))
            .map { String(decoding: $0, as: UTF8.self) }
    }

    @Test(
        .verifies("LINE-6", "CMP-26"),
        arguments: [
            // Compaction keeps hashes of these texts: they must never change.
            (#"{"b":[1,{}],"a":true,"ab":null}"#, #"{"a":true,"ab":null,"b":[1e0,{},],}"#),
            (#"{"a":1,"b":2,"\u0061":3}"#, #"{"a":3e0,"b":2e0,}"#),
            (#"["\n\u0001é\u00e9",-0.0,120,-0.0125]"#, #"["\n\u0001éé",e0,12e1,-125e-4,]"#),
            ("[0.0,1.50E+3,-7e-2,1e-123456789012345678]", "[e0,15e2,-7e-2,1e-123456789012345678,]"),
        ])
    func `the canonical form of a text never changes`(text: String, form: String) {
        #expect(canonical(text) == form)
    }

    @Test(.verifies("LINE-6"))
    func `a number's canonical text is the same in every notation`() throws {
        try Property.check("numbers", runs: 2_000) { choices in
            func digits(_ counts: ClosedRange<Int>) -> String {
                (0..<choices.int(in: counts))
                    .map { _ in choices.bool() ? "0" : "\(choices.int(in: 0...9))" }.joined()
            }
            let sign = choices.bool() ? "-" : ""
            let significant =
                "\(choices.int(in: 1...9))" + digits(0...6) + "\(choices.int(in: 1...9))"
            let bound = choices.bool() ? "9" : "9" + digits(15...22)
            let size = try #require(Int128(bound)) - Int128(choices.int(in: 0...9))
            let exponent = choices.bool() ? size : -size
            // The same value with zeros before and after its digits, and its decimal point anywhere.
            let zeros = choices.int(in: 0...3)
            let all = significant + String(repeating: "0", count: zeros)
            let fraction = choices.int(in: 0...all.count)
            let whole = all.dropLast(fraction)
            var text = sign + (whole.isEmpty ? "0" : whole)
            if fraction > 0 { text += "." + all.suffix(fraction) }
            let written = exponent - Int128(zeros) + Int128(fraction)
            if written != 0 || choices.bool() {
                text += choices.bool() ? "e" : "E"
                text += written < 0 ? "-" : choices.element(of: ["", "+"])
                text += (choices.bool() ? "00" : "") + "\(written.magnitude)"
            }
            let expected = "\(sign)\(significant)e\(exponent)"
            try #require(canonical(text) == expected, "\(text)")
            let bytes = Array(text.utf8)
            let parsed = JSONNumber(bytes.span.bytes, 0..<bytes.count).canonicalText
            try #require(String(decoding: parsed, as: UTF8.self) == expected, "\(text)")
        }
    }

    @Test(
        .verifies("LINE-6"),
        arguments: [
            ("1", "2"), ("1", "\"1\""), ("9007199254740993", "9007199254740992"),
            ("[1,2]", "[2,1]"),
            ("{\"a\":null}", "{}"), ("1e400", "1e401"), ("true", "1"), ("-1", "1"),
            ("1e1000000000", "1e1000000001"), ("1e999999999999999999", "1e999999999999999998"),
            ("1e99999999999999999999", "1e-99999999999999999999"),
            ("1e9223372036854775807", "1e9223372036854775808"),
        ])
    func `values with different meanings are not equal`(a: String, b: String) {
        #expect(parse(a) != parse(b))
    }

    @Test(.verifies("EVT-1"))
    func `whole numbers are read in any notation, and only if they fit`() {
        func integer(_ text: String) -> Int? {
            if case .number(let number)? = parse(text) { number.integerValue } else { nil }
        }
        #expect(integer("12") == 12)
        #expect(integer("1.20e1") == 12)
        #expect(integer("-7") == -7)
        #expect(integer("9223372036854775807") == .max)
        #expect(integer("9223372036854775808") == nil)
        #expect(integer("1.5") == nil)
        #expect(integer("1e999999999999999999999") == nil)
        #expect(integer("0e5") == 0)
    }
}

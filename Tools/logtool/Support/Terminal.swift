// What is known of the place where a person reads: is it a terminal, how wide is it, can it show more
// than ASCII. Used by Progress, Plot and the tables.

import Foundation

enum Terminal {
    /// Whether a stream is a terminal on which a line can be written over.
    static func canRedraw(_ stream: Int32) -> Bool {
        isatty(stream) == 1 && ProcessInfo.processInfo.environment["TERM"] != "dumb"
    }

    /// Columns of the terminal that a stream leads to; 80 where there is none.
    static func columns(_ stream: Int32) -> Int {
        var size = winsize()
        guard isatty(stream) == 1, ioctl(stream, UInt(TIOCGWINSZ), &size) == 0, size.ws_col > 0
        else { return 80 }
        return Int(size.ws_col)
    }

    /// Whether a character drives a terminal, cannot be seen or changes the order in which others are
    /// read.
    static func isUnsafe(_ scalar: Unicode.Scalar) -> Bool {
        if (0x20..<0x7F).contains(scalar.value) { return false }
        return switch scalar.properties.generalCategory {
        case .control, .format, .lineSeparator, .paragraphSeparator: true
        default: false
        }
    }

    /// A character as JSON writes it with ASCII alone.
    static func escape(_ scalar: Unicode.Scalar) -> String {
        UTF16.encode(scalar)?.map { unit in
            let digits = String(unit, radix: 16)
            return "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
        }.joined() ?? ""
    }

    /// JSON text that says the same and does not drive a terminal. Line breaks between tokens stay.
    static func escaped(json: [UInt8]) -> [UInt8] {
        if json.allSatisfy({ (0x20..<0x7F).contains($0) || $0 == 0x0A }) { return json }
        var result: [UInt8] = []
        result.reserveCapacity(json.count)
        for scalar in String(decoding: json, as: UTF8.self).unicodeScalars {
            if scalar != "\n", scalar != "\t", isUnsafe(scalar) {
                result += Array(escape(scalar).utf8)
            } else {
                result += Array(String(scalar).utf8)
            }
        }
        return result
    }

    /// Whether the locale's characters are UTF-8, as `setlocale` would find it.
    static let isUTF8 = isUTF8(ProcessInfo.processInfo.environment)

    static func isUTF8(_ environment: [String: String]) -> Bool {
        let names = ["LC_ALL", "LC_CTYPE", "LANG"]
        let locale = names.lazy.compactMap { environment[$0] }.first { !$0.isEmpty } ?? ""
        let charset = locale.split(separator: ".").dropFirst().first ?? ""
        let plain = charset.prefix { $0 != "@" }.lowercased().replacing("-", with: "")
        return plain == "utf8"
    }
}

// Properties of the terminal: its width, whether it can redraw a line, whether it shows UTF-8, and the
// characters that are unsafe on it.

import Foundation

enum Terminal {
    /// Whether a stream is a terminal on which a line can be overwritten.
    static func canRedraw(_ stream: Int32) -> Bool {
        isatty(stream) == 1 && ProcessInfo.processInfo.environment["TERM"] != "dumb"
    }

    /// The columns of a stream's terminal; 80 if the stream is not a terminal.
    static func columns(_ stream: Int32) -> Int {
        var size = winsize()
        guard isatty(stream) == 1, ioctl(stream, UInt(TIOCGWINSZ), &size) == 0, size.ws_col > 0
        else { return 80 }
        return Int(size.ws_col)
    }

    /// Whether a character controls a terminal, is invisible, or changes the reading order.
    static func isUnsafe(_ scalar: Unicode.Scalar) -> Bool {
        if (0x20..<0x7F).contains(scalar.value) { return false }
        return switch scalar.properties.generalCategory {
        case .control, .format, .lineSeparator, .paragraphSeparator: true
        default: false
        }
    }

    /// The JSON escape of a character.
    static func escape(_ scalar: Unicode.Scalar) -> String {
        UTF16.encode(scalar)?.map { unit in
            let digits = String(unit, radix: 16)
            return "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
        }.joined() ?? ""
    }

    /// Equivalent JSON text without unsafe characters. Line breaks between tokens stay.
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

    /// Whether the locale's encoding is UTF-8, by the rules of `setlocale`.
    static let isUTF8 = isUTF8(ProcessInfo.processInfo.environment)

    static func isUTF8(_ environment: [String: String]) -> Bool {
        let names = ["LC_ALL", "LC_CTYPE", "LANG"]
        let locale = names.lazy.compactMap { environment[$0] }.first { !$0.isEmpty } ?? ""
        let charset = locale.split(separator: ".").dropFirst().first ?? ""
        let plain = charset.prefix { $0 != "@" }.lowercased().replacing("-", with: "")
        return plain == "utf8"
    }
}

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

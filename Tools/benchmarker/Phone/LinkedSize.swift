// What an app becomes bigger by: a program that only opens a store, linked as releases are, without
// symbols. Row of Phone.

import Foundation

/// Bytes of the program `smallest`, which stands beside this one.
struct LinkedSize: Encodable {
    /// Of the file, without symbols.
    var fileBytes: Int
    /// Machine code and constants.
    var codeBytes: Int
    /// Data with a content of its own.
    var dataBytes: Int

    /// Nil where the program or the tools of the linker are missing.
    static func measure() throws -> LinkedSize? {
        let program = URL(filePath: CommandLine.arguments[0]).deletingLastPathComponent()
            .appending(path: "smallest").path
        let stripped = FileManager.default.temporaryDirectory
            .appending(path: "daybook-smallest-\(UUID().uuidString)").path
        defer { try? FileManager.default.removeItem(atPath: stripped) }
        guard shellText("strip -o '\(stripped)' '\(program)'") != nil,
            let words = shellText("size '\(stripped)' | tail -n 1")?
                .split(whereSeparator: \.isWhitespace),
            words.count > 2, let code = Int(words[0]), let data = Int(words[1]),
            let size = try FileManager.default.attributesOfItem(atPath: stripped)[.size] as? Int
        else { return nil }
        return LinkedSize(fileBytes: size, codeBytes: code, dataBytes: data)
    }
}

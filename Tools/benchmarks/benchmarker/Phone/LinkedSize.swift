// The size that the library adds to an app: programs that only open a store, linked for release, without
// symbols.

import Foundation

/// The size of a program in the folder of this one.
struct LinkedSize: Encodable {
    /// The product that the program links.
    var product: String
    /// The bytes of the file, without symbols.
    var fileBytes: Int
    /// The bytes of machine code and constants.
    var codeBytes: Int
    /// The bytes of initialized data.
    var dataBytes: Int

    /// Measures the programs; empty if they, `strip` or `size` are missing.
    static func all() throws -> [LinkedSize] {
        try [
            ("Daybook", "smallest"), ("DaybookOffline", "smallest-offline"),
            ("DaybookSQL with GRDB", "smallest-rows"),
        ].compactMap { try measure($1, linking: $0) }
    }

    private static func measure(
        _ name: String, linking product: String
    ) throws -> LinkedSize? {
        let program = URL(filePath: CommandLine.arguments[0]).deletingLastPathComponent()
            .appending(path: name).path
        let stripped = FileManager.default.temporaryDirectory
            .appending(path: "daybook-smallest-\(UUID().uuidString)").path
        defer { try? FileManager.default.removeItem(atPath: stripped) }
        guard shellText("strip -o '\(stripped)' '\(program)'") != nil,
            let words = shellText("size '\(stripped)' | tail -n 1")?
                .split(whereSeparator: \.isWhitespace),
            words.count > 2, let code = Int(words[0]), let data = Int(words[1]),
            let size = try FileManager.default.attributesOfItem(atPath: stripped)[.size] as? Int
        else { return nil }
        return LinkedSize(product: product, fileBytes: size, codeBytes: code, dataBytes: data)
    }
}

// The plaintext of a sealed file: names and values, sorted by name. Spec/operations/secrets.md, SEC-6.

/// The content of a sealed file.
enum SecretTable {
    static let nameBytesMax = 256

    /// Encodes a table.
    static func bytes(_ secrets: [String: [UInt8]]) -> [UInt8] {
        var bytes: [UInt8] = []
        append(secrets.count, to: &bytes)
        let rows = secrets.map { (name: Array($0.key.utf8), value: $0.value) }
        for row in rows.sorted(by: { $0.name.lexicographicallyPrecedes($1.name) }) {
            append(row.name.count, to: &bytes)
            bytes += row.name
            append(row.value.count, to: &bytes)
            bytes += row.value
        }
        return bytes
    }

    /// Decodes a table; nil if the bytes are not a table. Every length is checked against the remaining
    /// bytes.
    static func read(_ bytes: [UInt8]) -> [String: [UInt8]]? {
        var remaining = bytes[...]
        guard let count = number(&remaining) else { return nil }
        var secrets: [String: [UInt8]] = [:]
        for _ in 0..<count {
            guard let name = row(&remaining), 1...nameBytesMax ~= name.count,
                let text = String(validating: name, as: UTF8.self), let value = row(&remaining),
                secrets.updateValue(Array(value), forKey: text) == nil
            else { return nil }
        }
        return remaining.isEmpty ? secrets : nil
    }

    private static func append(_ number: Int, to bytes: inout [UInt8]) {
        for shift in stride(from: 0, to: 32, by: 8) {
            bytes.append(UInt8(truncatingIfNeeded: number >> shift))
        }
    }

    private static func number(_ remaining: inout ArraySlice<UInt8>) -> Int? {
        guard remaining.count >= 4 else { return nil }
        let number = remaining.prefix(4).reversed().reduce(0) { $0 << 8 | Int($1) }
        remaining = remaining.dropFirst(4)
        return number
    }

    private static func row(_ remaining: inout ArraySlice<UInt8>) -> ArraySlice<UInt8>? {
        guard let count = number(&remaining), count <= remaining.count else { return nil }
        defer { remaining = remaining.dropFirst(count) }
        return remaining.prefix(count)
    }
}

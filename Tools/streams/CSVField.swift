// The fields of a file that a spreadsheet opens, for `logtool sql` and Studio. Spec/operations/logtool.md, TOOL-59.

/// Texts as fields of CSV (RFC 4180).
package enum CSVField {
    /// The field of a text. A spreadsheet takes a field that begins with one of seven characters for a formula, so an
    /// apostrophe is put before it. The empty text is `""`: a field without any character is NULL.
    package static func of(_ text: [UInt8]) -> [UInt8] {
        let quote = UInt8(ascii: "\"")
        let isFormula = text.first.map { "=+-@\t\r\n".utf8.contains($0) } ?? false
        let field = isFormula ? [UInt8(ascii: "'")] + text : text
        guard field.isEmpty || field.contains(where: { ",\"\r\n".utf8.contains($0) }) else {
            return field
        }
        return [quote] + field.flatMap { $0 == quote ? [quote, quote] : [$0] } + [quote]
    }
}

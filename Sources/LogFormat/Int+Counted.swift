// A number with its noun, for descriptions and messages.

extension Int {
    /// The number and the noun: `1 event`, `2 events`.
    ///
    /// - Parameters:
    ///   - noun: the noun in the singular.
    ///   - plural: the noun in the plural; nil to append an s.
    package func counted(_ noun: String, plural: String? = nil) -> String {
        "\(self) \(self == 1 ? noun : plural ?? noun + "s")"
    }
}

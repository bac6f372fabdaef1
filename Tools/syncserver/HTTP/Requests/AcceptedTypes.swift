// The media types that a request accepts, with their weights. RFC 9110, section 12.5.1;
// Spec/protocol/push.md, PUSH-1.

/// The parsed header Accept.
struct AcceptedTypes {
    /// The preference of a client for a media type.
    struct Preference {
        /// 0, not accepted, to 1.
        let weight: Double
        /// True if the header names the type itself, not a range that contains it.
        let isNamed: Bool
    }

    private var weights: [Substring: Double] = [:]

    /// Parses a header. Parameters other than the weight are ignored, and elements whose weight is malformed.
    init(_ header: String) {
        let header = header.lowercased()
        for element in Self.split(header[...], at: ",") {
            let parts = Self.split(element, at: ";").map(Self.trimmed)
            let weight: Double? =
                parts.dropFirst().last { $0.hasPrefix("q=") }
                .map { Self.weight($0.dropFirst(2)) } ?? 1
            if let range = parts.first, let weight { weights[range] = weight }
        }
    }

    /// The preference for a type, by the most specific range that contains it; nil if there is none.
    func preference(for type: String) -> Preference? {
        if let weight = weights[type[...]] { return Preference(weight: weight, isNamed: true) }
        let kind = type.prefix { $0 != "/" }
        return (weights["\(kind)/*"] ?? weights["*/*"]).map {
            Preference(weight: $0, isNamed: false)
        }
    }

    /// Parses `0` to `1` with at most three decimal places.
    private static func weight(_ text: Substring) -> Double? {
        guard text.wholeMatch(of: /0(\.[0-9]{0,3})?|1(\.0{0,3})?/) != nil else { return nil }
        return Double(text.hasSuffix(".") ? text.dropLast() : text)
    }

    /// Splits at a separator outside of quoted strings.
    private static func split(_ text: Substring, at separator: Character) -> [Substring] {
        var (isQuoted, isEscaped) = (false, false)
        return text.split(omittingEmptySubsequences: true) { character in
            defer { isEscaped = isQuoted && character == "\\" && !isEscaped }
            if character == "\"", !isEscaped { isQuoted.toggle() }
            return character == separator && !isQuoted
        }
    }

    private static func trimmed(_ text: Substring) -> Substring {
        var text = text
        while text.first?.isWhitespace == true { text.removeFirst() }
        while text.last?.isWhitespace == true { text.removeLast() }
        return text
    }
}

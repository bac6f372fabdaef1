// Search for a text in stored lines, with ASCII letters in any case.

/// A text to search for.
struct TextSearch {
    private let text: [UInt8]
    /// The distance by which the search moves on, by the byte under the end of the text (Horspool,
    /// "Practical fast searching in strings", 1980).
    private let shifts: [Int]

    /// - Parameter text: the text, with ASCII letters in lower case; not empty.
    init(lowercased text: [UInt8]) {
        self.text = text
        var shifts = [Int](repeating: text.count, count: 256)
        for (index, byte) in text.dropLast().enumerated() {
            shifts[Int(byte)] = text.count - 1 - index
            if byte >= UInt8(ascii: "a"), byte <= UInt8(ascii: "z") {
                shifts[Int(byte & ~0x20)] = text.count - 1 - index
            }
        }
        self.shifts = shifts
    }

    /// True if a line contains the text. O(bytes), for most texts O(bytes / length of the text).
    func matches(_ line: RawSpan) -> Bool {
        line.withUnsafeBytes { line in
            text.withUnsafeBufferPointer { text in
                shifts.withUnsafeBufferPointer { shifts in
                    let last = text.count - 1
                    var end = last
                    while end < line.count {
                        let byte = line[end]
                        if byte.lowercasedASCII == text[last] {
                            var index = 0
                            while index < last,
                                line[end - last + index].lowercasedASCII == text[index]
                            {
                                index += 1
                            }
                            if index == last { return true }
                        }
                        end += shifts[Int(byte)]
                    }
                    return false
                }
            }
        }
    }
}

// The part of a file that is being read: structures that follow each other are read from one window.

/// A part of a file in memory.
struct FileWindow: Sendable {
    private let file: any File
    /// The bytes of a window, if the file has them and no structure is longer.
    private let length: Int
    private(set) var bytes: [UInt8] = []
    /// The offset of the first byte.
    private(set) var start = 0

    init(_ file: any File, length: Int = 256 * 1024) {
        self.file = file
        self.length = length
    }

    /// Loads `count` bytes at `offset`, as far as the file has them.
    ///
    /// - Returns: the number of bytes available there, at most `count`.
    mutating func load(_ offset: Int, _ count: Int) throws(FileError) -> Int {
        if offset >= start, offset + count <= start + bytes.count { return count }
        bytes = try file.read(at: offset, count: max(count, length))
        start = offset
        return min(count, bytes.count)
    }
}

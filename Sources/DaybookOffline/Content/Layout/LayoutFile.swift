// Writes one file of the folder layout.

import Daybook

/// A new file with a write buffer, which is synced at its end.
final class LayoutFile {
    private let file: any File
    private let path: String
    private let bytesMax: Int
    private var buffer: [UInt8] = []
    private var writtenBytes = 0

    private static let bufferBytesMax = 256 * 1024

    init(
        _ path: String, _ fileSystem: any FileSystem, bytesMax: Int = ContentLayout.jsonBytesMax
    ) throws(FileError) {
        self.path = path
        self.bytesMax = bytesMax
        file = try fileSystem.open(path, .createNew)
    }

    /// The number of bytes so far.
    var byteCount: Int { writtenBytes + buffer.count }

    /// Appends bytes.
    ///
    /// - Throws: `FileError`; `EventError` (`tooLarge`) for more than a reader accepts.
    func write(_ bytes: [UInt8]) throws {
        guard bytes.count <= bytesMax - byteCount else {
            throw EventError(.tooLarge, "\(path): more than \(bytesMax) bytes")
        }
        buffer += bytes
        if buffer.count >= Self.bufferBytesMax { try flush() }
    }

    /// Writes the opening of a list, and its elements, each on a line.
    func write(_ begin: String, _ count: Int, _ element: (Int) throws -> [UInt8]) throws {
        try write(Array(begin.utf8))
        for number in 0..<count {
            try write(Array((number == 0 ? "\n" : ",\n").utf8) + (try element(number)))
        }
        if count > 0 { try write([UInt8(ascii: "\n")]) }
    }

    private func flush() throws(FileError) {
        try file.write(buffer, at: writtenBytes)
        writtenBytes += buffer.count
        buffer.removeAll(keepingCapacity: true)
    }

    /// Flushes the buffer and returns the file for reading.
    func flushed() throws(FileError) -> any File {
        try flush()
        return file
    }

    /// Writes the end of a list and makes the file durable.
    ///
    /// - Returns: the file's size.
    func finish(_ end: String) throws -> Int {
        try write(Array("\(end)\n".utf8))
        return try finish()
    }

    /// Makes the file durable.
    func finish() throws(FileError) -> Int {
        try flush()
        try file.sync()
        return writtenBytes
    }
}

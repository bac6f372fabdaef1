// Reads the lines of a file or a pipe in bounded memory, whatever the length of a line. Feeds EventImport.

import Foundation
import LogFormat
import LogStorage

/// A reader of the lines of a file or of standard input.
package struct LineReader: Sendable {
    private let descriptor: Descriptor
    private let path: String
    private var buffer: [UInt8] = []
    private var start = 0
    private var isAtEnd = false
    /// The number of the last line read; the first is 1.
    package private(set) var number = 0
    /// The bytes of the lines read so far.
    package private(set) var readBytes = 0
    /// The size of the file; nil for anything else, such as a pipe.
    package let totalBytes: Int?

    private static let chunkBytes = 256 * 1024
    private static let byteOrderMark: [UInt8] = [0xEF, 0xBB, 0xBF]

    /// An open file, closed when the last copy of its reader is released.
    private final class Descriptor: Sendable {
        let number: Int32
        init(_ number: Int32) { self.number = number }
        // Standard input, 0, stays open.
        deinit { if number != 0 { close(number) } }
    }

    /// Creates a reader of an open file, and closes it at the end unless it is standard input.
    ///
    /// - Parameters:
    ///   - descriptor: the open file.
    ///   - path: the name of the file in errors.
    package init(_ descriptor: Int32, _ path: String) {
        self.descriptor = Descriptor(descriptor)
        self.path = path
        var status = stat()
        let isFile = fstat(descriptor, &status) == 0 && status.st_mode & S_IFMT == S_IFREG
        totalBytes = isFile ? Int(status.st_size) : nil
    }

    /// Opens a file.
    ///
    /// - Throws: `LogError` (`io`) for a file that cannot be opened.
    package init(opening path: String) throws(LogError) {
        let descriptor = open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else {
            throw LogError(.io, path: path, "open: \(String(cString: strerror(errno)))")
        }
        self.init(descriptor, path)
    }

    /// Reads the next line.
    ///
    /// - Returns: the line without its line feed, or nil at the end. A byte-order mark before a line is
    ///   left out.
    /// - Throws: `EventError` (`tooLarge`) for a line that is longer than any event's; `LogError` (`io`).
    package mutating func next() throws -> [UInt8]? {
        var searched = start
        while true {
            if let end = buffer[searched...].firstIndex(of: UInt8(ascii: "\n")) {
                return consumeLine(through: end, feedBytes: 1)
            }
            if isAtEnd {
                guard start < buffer.count else { return nil }
                return consumeLine(through: buffer.count, feedBytes: 0)
            }
            guard buffer.count - start <= FormatLimit.lineBytesMax + 1 else {
                number += 1
                throw EventError(
                    .tooLarge, "the line is longer than \(FormatLimit.lineBytesMax) bytes")
            }
            buffer.removeSubrange(..<start)
            start = 0
            searched = buffer.count
            let chunk = try read()
            buffer.append(contentsOf: chunk)
            isAtEnd = chunk.isEmpty
        }
    }

    private mutating func consumeLine(through end: Int, feedBytes: Int) -> [UInt8] {
        var line = buffer[start..<end]
        start = end + feedBytes
        number += 1
        readBytes += line.count + feedBytes
        // Also in the middle: several files may have been joined.
        if line.starts(with: Self.byteOrderMark) {
            line = line.dropFirst(Self.byteOrderMark.count)
        }
        return Array(line)
    }

    /// Reads the bytes that are available: a typed line must not wait for a full chunk.
    private func read() throws(LogError) -> [UInt8] {
        var chunk = [UInt8](repeating: 0, count: Self.chunkBytes)
        while true {
            let count = chunk.withUnsafeMutableBytes {
                Foundation.read(descriptor.number, $0.baseAddress, $0.count)
            }
            if count >= 0 { return Array(chunk[..<count]) }
            guard errno == EINTR else {
                throw LogError(.io, path: path, "read: \(String(cString: strerror(errno)))")
            }
        }
    }
}

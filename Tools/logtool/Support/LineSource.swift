// Lines of a file or of standard input, one after the other, in memory that a long line cannot
// exhaust.

import DaybookOffline
import Foundation
import LogFormat
import LogStorage

struct LineSource {
    private let handle: FileHandle
    private let path: String
    private var buffer: [UInt8] = []
    private var start = 0
    private var isAtEnd = false
    private(set) var number = 0
    /// Bytes of the lines given so far.
    private(set) var readBytes = 0
    /// Bytes of the file; nil where nobody knows, as of a pipe.
    let totalBytes: Int?

    private static let chunkBytes = 256 * 1024

    /// Opens a file, or standard input for `-`.
    init(_ path: String) throws {
        self.path = path
        if path == "-" {
            handle = .standardInput
        } else {
            let descriptor = open(path, O_RDONLY | O_CLOEXEC)
            guard descriptor >= 0 else {
                let reason = errno
                Message.error("\(path): \(String(cString: strerror(reason)))")
                throw [ENOENT, ENOTDIR, EACCES].contains(reason) ? Exit.noLog : Exit.io
            }
            handle = FileHandle(fileDescriptor: descriptor, closeOnDealloc: true)
        }
        var status = stat()
        let isFile =
            fstat(handle.fileDescriptor, &status) == 0 && status.st_mode & S_IFMT == S_IFREG
        totalBytes = isFile ? Int(status.st_size) : nil
    }

    /// The next line without its newline, or nil at the end.
    mutating func next() throws -> [UInt8]? {
        var searched = start
        while true {
            if let end = buffer[searched...].firstIndex(of: UInt8(ascii: "\n")) {
                let line = Array(buffer[start..<end])
                start = end + 1
                number += 1
                readBytes += line.count + 1
                return line
            }
            if isAtEnd {
                guard start < buffer.count else { return nil }
                let line = Array(buffer[start...])
                start = buffer.count
                number += 1
                return line
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

    /// What is there by now: a line that somebody types or pipes in must not wait for more.
    private func read() throws(LogError) -> [UInt8] {
        var chunk = [UInt8](repeating: 0, count: Self.chunkBytes)
        while true {
            let count = chunk.withUnsafeMutableBytes {
                Foundation.read(handle.fileDescriptor, $0.baseAddress, $0.count)
            }
            if count >= 0 { return Array(chunk[..<count]) }
            guard errno == EINTR else {
                throw LogError(.io, path: path, "read: \(String(cString: strerror(errno)))")
            }
        }
    }
}

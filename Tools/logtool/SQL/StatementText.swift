// The statements that a file or standard input has, for logtool sql.

import Foundation

enum StatementText {
    private static let mebibytesMax = 16

    /// Reads all statements of a file.
    ///
    /// - Throws: an exit code, with a message: 66 or 74 for a file that cannot be read, 64 for one that is not
    ///   UTF-8 or too long.
    static func ofFile(_ path: String) throws -> String {
        let descriptor = try InputFile.open(path)
        defer { close(descriptor) }
        return try read(descriptor, path)
    }

    /// Reads all statements of standard input; throws as `ofFile`.
    static func ofInput() throws -> String { try read(STDIN_FILENO, "standard input") }

    private static func read(_ descriptor: Int32, _ name: String) throws -> String {
        var bytes: [UInt8] = []
        var chunk = [UInt8](repeating: 0, count: 64 * 1_024)
        while true {
            let count = Foundation.read(descriptor, &chunk, chunk.count)
            if count < 0, errno == EINTR { continue }
            guard count >= 0 else {
                Message.error("\(name): \(String(cString: strerror(errno)))")
                throw Exit.io
            }
            guard count > 0 else { break }
            bytes += chunk[..<count]
            guard bytes.count <= mebibytesMax * 1_048_576 else {
                Message.error("\(name) has more than \(mebibytesMax) MiB of statements")
                throw Exit.usage
            }
        }
        let byteOrderMark: [UInt8] = [0xEF, 0xBB, 0xBF]
        if bytes.starts(with: byteOrderMark) { bytes.removeFirst(byteOrderMark.count) }
        guard let text = String(validating: bytes, as: UTF8.self) else {
            Message.error("\(name): the statements are not UTF-8")
            throw Exit.usage
        }
        return text
    }
}

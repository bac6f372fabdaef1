// Events as the benchmarker wrote them to a file, ready to be recorded. Read before anything is timed.

import Foundation

/// A line, and the id that is in it.
struct PeerEvent: Sendable {
    /// 16 bytes.
    let id: [UInt8]
    let line: [UInt8]

    private static let before = Array(#"{"specversion":"1.0","id":""#.utf8)
    private static let idCharacters = 36

    /// The events of a file of lines as a log has them.
    static func all(of file: String) throws -> [PeerEvent] {
        try Data(contentsOf: URL(filePath: file)).split(separator: UInt8(ascii: "\n")).map { line in
            let text = line.dropFirst(before.count).prefix(idCharacters)
            guard line.starts(with: before),
                let id = UUID(uuidString: String(decoding: text, as: UTF8.self))
            else { throw PeerFailure("\(file) has a line that does not begin with an id") }
            return PeerEvent(id: withUnsafeBytes(of: id.uuid) { Array($0) }, line: Array(line))
        }
    }
}

// Events from a file of the benchmarker, ready to be recorded. Read before the time is measured.

import Foundation

/// A line and its id.
struct PeerEvent: Sendable {
    /// The 16 bytes of the id.
    let id: [UInt8]
    let line: [UInt8]

    private static let prefix = Array(#"{"specversion":"1.0","id":""#.utf8)
    private static let idCharacters = 36

    /// Reads the events of a file of log lines.
    static func all(of file: String) throws -> [PeerEvent] {
        try Data(contentsOf: URL(filePath: file)).split(separator: UInt8(ascii: "\n")).map { line in
            let text = line.dropFirst(prefix.count).prefix(idCharacters)
            guard line.starts(with: prefix),
                let id = UUID(uuidString: String(decoding: text, as: UTF8.self))
            else { throw PeerFailure("\(file) has a line that does not begin with an id") }
            return PeerEvent(id: withUnsafeBytes(of: id.uuid) { Array($0) }, line: Array(line))
        }
    }
}

// RocksDB and LMDB: peers in a process of their own, Tools/benchmarks/peers, so that no product of the
// project links them. Tools/benchmark passes the program's path; without it they are left out.

import Foundation

/// A database that Tools/benchmarks/peers knows.
struct OutsidePeer {
    /// The name in tables.
    let name: String
    private let program: String

    /// The name in the program's arguments.
    private var argument: String { name.lowercased() }

    /// The available peers.
    static let all: [OutsidePeer] = {
        guard let program = ProcessInfo.processInfo.environment["DAYBOOK_PEERS"] else { return [] }
        return ["RocksDB", "LMDB"].map { OutsidePeer(name: $0, program: program) }
    }()

    /// Runs a work with the lines of a file.
    ///
    /// - Returns: the cost in seconds, as `PeerWork` of Tools/benchmarks/peers measures it.
    func perform(_ work: String, _ file: URL, events: Int, in folder: URL) throws -> Cost {
        let data = try output(of: [program, argument, work, file.path, folder.path])
        let words = String(decoding: data, as: UTF8.self).split(whereSeparator: \.isWhitespace)
        guard words.count == 3, let value = Double(words[0]), let processor = Double(words[1]),
            Int(words[2]) == events
        else { throw RaceFailure("\(name) has not finished \(work) with \(events) events") }
        return Cost(value: value, processor: processor)
    }

    /// Returns contenders that run a work, each in a folder of its own.
    ///
    /// - Parameters:
    ///   - events: the number of lines in the file.
    ///   - divisor: the number by which the seconds are divided.
    static func contenders(
        _ work: String, _ file: URL, events: Int, by divisor: Int = 1, in parent: URL
    ) -> [Contender] {
        all.map { peer in
            Contender(name: peer.name) {
                let folder = try Folder(in: parent)
                defer { folder.remove() }
                return try peer.perform(work, file, events: events, in: folder.url)
                    / Double(divisor)
            }
        }
    }
}

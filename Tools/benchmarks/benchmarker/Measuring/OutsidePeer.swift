// RocksDB and LMDB: peers in a process of their own, Tools/benchmarks/peers, so that nothing of the project is
// linked with them. Tools/benchmark says where the program is; without it they are left out.

import Foundation

/// A database that Tools/benchmarks/peers knows.
struct OutsidePeer {
    /// What tables call it.
    let name: String
    private let program: String

    /// What the program calls it.
    private var argument: String { name.lowercased() }

    /// Those that can be asked.
    static let all: [OutsidePeer] = {
        guard let program = ProcessInfo.processInfo.environment["DAYBOOK_PEERS"] else { return [] }
        return ["RocksDB", "LMDB"].map { OutsidePeer(name: $0, program: program) }
    }()

    /// Does a piece of work with the lines of a file.
    ///
    /// - Returns: seconds, as `PeerWork` of Tools/benchmarks/peers counts them.
    func perform(_ work: String, _ file: URL, events: Int, in folder: URL) throws -> Double {
        let data = try output(of: [program, argument, work, file.path, folder.path])
        let words = String(decoding: data, as: UTF8.self).split(whereSeparator: \.isWhitespace)
        guard words.count == 2, let seconds = Double(words[0]), Int(words[1]) == events else {
            throw RaceFailure("\(name) has not done \(work) with \(events) events")
        }
        return seconds
    }

    /// Contenders that do a piece of work in a folder of their own.
    ///
    /// - Parameters:
    ///   - events: how many lines the file has.
    ///   - divisor: what the seconds are divided by.
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

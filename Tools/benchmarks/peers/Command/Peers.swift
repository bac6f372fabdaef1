// A peer of the benchmark as a process: does one work with one database, and prints seconds, processor
// time and the number of events. Started by Tools/benchmarks/benchmarker.

import Foundation

/// The command: `peers rocksdb|lmdb WORK LINES FOLDER`.
@main
enum Peers {
    static func main() {
        let arguments = CommandLine.arguments.dropFirst()
        guard arguments.count == 4, let work = PeerWork(rawValue: arguments[2]),
            let peer = peer(arguments[1])
        else {
            let works = PeerWork.allCases.map(\.rawValue).joined(separator: "|")
            end("usage: peers rocksdb|lmdb \(works) LINES FOLDER", 64)
        }
        do {
            let done = try work.perform(on: peer.init(in: arguments[4]), arguments[3])
            print(done.seconds, done.processor, done.events)
            // Without the destructors of a normal exit: RocksDB's threads may still use what they destroy.
            fflush(nil)
            _exit(0)
        } catch {
            end("peers: \(error)", 74)
        }
    }

    private static func peer(_ name: String) -> (any Peer.Type)? {
        switch name {
        case "rocksdb": RocksDBPeer.self
        case "lmdb": LMDBPeer.self
        default: nil
        }
    }

    private static func end(_ message: String, _ code: Int32) -> Never {
        FileHandle.standardError.write(Data("\(message)\n".utf8))
        exit(code)
    }
}

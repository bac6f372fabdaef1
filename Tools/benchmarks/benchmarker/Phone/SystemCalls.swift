// The writes and syncs of a process, counted by strace, for a peer whose file system cannot be
// instrumented.

import Foundation

/// Counts of system calls.
struct SystemCalls {
    var writes = 0.0
    var syncs = 0.0

    func divided(by events: Int) -> SystemCalls {
        SystemCalls(writes: writes / Double(events), syncs: syncs / Double(events))
    }

    /// Counts the calls of an errand; returns nil if strace is not installed.
    static func count(during errand: some Errand) throws -> SystemCalls? {
        guard shellText("command -v strace")?.isEmpty == false else { return nil }
        let summary = FileManager.default.temporaryDirectory
            .appending(path: "daybook-calls-\(UUID().uuidString)")
        defer { try? FileManager.default.removeItem(at: summary) }
        _ = try errand.inOwnProcess(under: [
            "strace", "-f", "-qq", "-c", "-e", "trace=pwrite64,fsync,fdatasync", "-o",
            summary.path,
        ])
        var calls = SystemCalls()
        for line in try String(contentsOf: summary, encoding: .utf8).split(separator: "\n") {
            // Share of time, seconds, µs a call, calls, errors if any, name.
            let words = line.split(separator: " ")
            guard words.count >= 5, let count = Double(words[3]) else { continue }
            switch words.last {
            case "pwrite64": calls.writes += count
            case "fsync", "fdatasync": calls.syncs += count
            default: break
            }
        }
        return calls
    }
}

// The most memory that streaming work takes: each in a process of its own, whose peak the system
// remembers. Row 9 of the table.

import Daybook
import Foundation

/// Work whose memory must not grow with the log.
enum StreamingWork: String, CaseIterable {
    case scan, verify, compact, open

    func perform(on log: URL) async throws {
        switch self {
        case .scan: try LogReader(log.path).forEachLine { _, _ in true }
        case .verify:
            _ = try LogVerifier(log.path).verify { _, _ in nil }
        case .compact:
            let store = try await OfflineStore.open(at: log, compaction: nil)
            try await store.compact()
            try await store.close()
        case .open: try await OfflineStore.open(at: log, compaction: nil).close()
        }
    }

    /// The most memory that this process has had, in MiB.
    static func peak() throws -> Double {
        let status = try String(contentsOf: URL(filePath: "/proc/self/status"), encoding: .utf8)
        let line = status.split(separator: "\n").first { $0.hasPrefix("VmHWM:") }
        guard let number = line?.split(whereSeparator: \.isWhitespace).dropFirst().first,
            let kibibytes = Double(number)
        else { throw RaceFailure("the system does not say how much memory was taken") }
        return kibibytes / 1_024
    }

    /// Lets another process of this program do it.
    ///
    /// - Returns: its peak in MiB.
    func measured(on log: URL) throws -> Double {
        let process = Process()
        process.executableURL = URL(filePath: CommandLine.arguments[0])
        process.arguments = ["memory", rawValue, log.path]
        let output = Pipe()
        process.standardOutput = output
        try process.run()
        let text = String(
            decoding: output.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
        process.waitUntilExit()
        guard process.terminationStatus == 0,
            let peak = Double(text.trimmingCharacters(in: .whitespacesAndNewlines))
        else { throw RaceFailure("measuring \(rawValue) ended with \(process.terminationStatus)") }
        return peak
    }
}

// What the process has in memory, as the system says. Used by AssetReads.

import Foundation

/// Bytes in memory.
enum Memory {
    /// At most so far.
    static var residentMax: Int {
        var usage = rusage()
        #if canImport(Darwin)
            getrusage(RUSAGE_SELF, &usage)
            return usage.ru_maxrss
        #else
            getrusage(__rusage_who_t(RUSAGE_SELF.rawValue), &usage)
            return usage.ru_maxrss * 1_024
        #endif
    }

    /// Now; on Darwin, which does not say so in a line, what was the most.
    static var resident: Int {
        #if os(Linux)
            let text = (try? String(contentsOfFile: "/proc/self/statm", encoding: .utf8)) ?? ""
            let pages = text.split(separator: " ").dropFirst().first.flatMap { Int($0) } ?? 0
            return pages * Int(sysconf(Int32(_SC_PAGESIZE)))
        #else
            return residentMax
        #endif
    }
}

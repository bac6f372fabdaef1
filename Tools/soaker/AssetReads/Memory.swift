// The memory of the process as the system reports it.

import Foundation

/// The resident memory of the process, in bytes.
enum Memory {
    /// The peak so far.
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

    /// The current value; on Darwin the peak.
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

// The system's counters for this process: memory, bytes written to the disk, wake-ups. Linux only.

import Foundation

enum SystemCounters {
    /// The peak resident memory of this process.
    static func peakMiB() throws -> Double { try status("VmHWM") / 1_024 }

    /// The present resident memory.
    static func residentMiB() throws -> Double { try status("VmRSS") / 1_024 }

    /// The bytes that this process has passed to `write` and similar calls so far.
    static func bytesHandedOver() throws -> Double { try member("wchar", of: "/proc/self/io") }

    /// The bytes of pages that the system has written to a device for this process so far.
    static func bytesToDevice() throws -> Double { try member("write_bytes", of: "/proc/self/io") }

    /// The voluntary context switches of each thread of this process except the current one: each is a
    /// sleep that a wake-up ended.
    static func sleeps() throws -> [String: Int] {
        let ownThread = URL(filePath: "/proc/thread-self").resolvingSymlinksInPath()
            .lastPathComponent
        var sleeps: [String: Int] = [:]
        for thread in try FileManager.default.contentsOfDirectory(atPath: "/proc/self/task")
        where thread != ownThread {
            // Nil if the thread has ended since the folder was listed.
            let path = "/proc/self/task/\(thread)/status"
            sleeps[thread] = (try? member("voluntary_ctxt_switches", of: path)).map { Int($0) }
        }
        return sleeps
    }

    /// The processor time of all threads of this process so far, and of its child processes that have ended, in
    /// seconds.
    static func processorSeconds() -> Double {
        func seconds(_ time: timeval) -> Double {
            Double(time.tv_sec) + Double(time.tv_usec) / 1e6
        }
        return [RUSAGE_SELF, RUSAGE_CHILDREN].reduce(0) { sum, who in
            var usage = rusage()
            getrusage(__rusage_who_t(who.rawValue), &usage)
            return sum + seconds(usage.ru_utime) + seconds(usage.ru_stime)
        }
    }

    /// The processor time of this thread so far, in seconds.
    static func threadProcessorSeconds() -> Double {
        var time = timespec()
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
        return Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
    }

    private static func status(_ name: String) throws -> Double {
        try member(name, of: "/proc/self/status")
    }

    /// Reads a number from a file of lines such as `VmHWM:   1234 kB`.
    private static func member(_ name: String, of path: String) throws -> Double {
        let text = try String(contentsOfFile: path, encoding: .utf8)
        let line = text.split(separator: "\n").first { $0.hasPrefix("\(name):") }
        guard let word = line?.split(whereSeparator: \.isWhitespace).dropFirst().first,
            let number = Double(word)
        else { throw RaceFailure("\(path) has no \(name)") }
        return number
    }
}

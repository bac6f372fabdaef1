// What the system knows of this process: memory, bytes that went to the disk, wake-ups. Linux only.

import Foundation

enum SystemCounters {
    /// The most memory that this process has had.
    static func peakMiB() throws -> Double { try status("VmHWM") / 1_024 }

    /// The memory that it has now.
    static func residentMiB() throws -> Double { try status("VmRSS") / 1_024 }

    /// Bytes that this process handed to `write` and the like so far.
    static func bytesHandedOver() throws -> Double { try member("wchar", of: "/proc/self/io") }

    /// Bytes of the pages that the system had to write to a device for this process so far.
    static func bytesToDevice() throws -> Double { try member("write_bytes", of: "/proc/self/io") }

    /// How often each thread of this process, other than the one that asks, has slept so far: each
    /// time something woke it.
    static func sleeps() throws -> [String: Int] {
        let asking = URL(filePath: "/proc/thread-self").resolvingSymlinksInPath().lastPathComponent
        var sleeps: [String: Int] = [:]
        for thread in try FileManager.default.contentsOfDirectory(atPath: "/proc/self/task")
        where thread != asking {
            // A thread may have ended since.
            let path = "/proc/self/task/\(thread)/status"
            sleeps[thread] = (try? member("voluntary_ctxt_switches", of: path)).map { Int($0) }
        }
        return sleeps
    }

    /// Seconds of the processor that this process has taken so far.
    static func processorSeconds() -> Double {
        var usage = rusage()
        getrusage(__rusage_who_t(RUSAGE_SELF.rawValue), &usage)
        func seconds(_ time: timeval) -> Double {
            Double(time.tv_sec) + Double(time.tv_usec) / 1e6
        }
        return seconds(usage.ru_utime) + seconds(usage.ru_stime)
    }

    /// Seconds of the processor that this thread has taken so far.
    static func threadProcessorSeconds() -> Double {
        var time = timespec()
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
        return Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
    }

    private static func status(_ name: String) throws -> Double {
        try member(name, of: "/proc/self/status")
    }

    /// A number in a file of lines such as `VmHWM:   1234 kB`.
    private static func member(_ name: String, of path: String) throws -> Double {
        let text = try String(contentsOfFile: path, encoding: .utf8)
        let line = text.split(separator: "\n").first { $0.hasPrefix("\(name):") }
        guard let word = line?.split(whereSeparator: \.isWhitespace).dropFirst().first,
            let number = Double(word)
        else { throw RaceFailure("\(path) does not say \(name)") }
        return number
    }
}

// The program whose instructions are counted: `hotpaths NAME EVENTS TIMES` does one work TIMES times with a
// log in memory. Tools/instructions runs it under callgrind. Spec/benchmarks.

import Dispatch
import Foundation

@main
enum HotPaths {
    private static let usage = 64
    private static let software = 70
    private static let log = WorkLog()

    /// Not `async`, because valgrind crashes when libdispatch takes over the main thread.
    static func main() {
        let arguments = Array(CommandLine.arguments.dropFirst())
        guard arguments.count == 3, let work = HotWork(rawValue: arguments[0]),
            let events = Int(arguments[1]), events > 0, let times = Int(arguments[2]), times >= 0
        else {
            let names = HotWork.allCases.map(\.rawValue).joined(separator: ", ")
            fail("usage: hotpaths NAME EVENTS TIMES; NAME is one of: \(names)", usage)
        }
        let done = DispatchSemaphore(value: 0)
        Task.detached {
            do { try await work.perform(on: log, events: events, times: times) } catch {
                fail("hotpaths: \(error)", software)
            }
            done.signal()
        }
        done.wait()
    }

    private static func fail(_ message: String, _ code: Int) -> Never {
        FileHandle.standardError.write(Data((message + "\n").utf8))
        exit(Int32(code))
    }
}

// A process asks another one for its log, and the other one goes on afterwards. Spec/format/companions.md.

import DaybookOffline
import DaybookTestKit
import Foundation
import LogStorage
import Synchronization
import TestSupport
import Testing

@Suite struct HandoverTests {
    private let disk = POSIXFileSystem()

    @Test(.verifies("COMP-18"), .enabled(if: FileManager.default.fileExists(atPath: "/proc/locks")))
    func `a holder hands its log over under load, and goes on when the other has finished`()
        async throws
    {
        let folder = try TemporaryFolder()
        defer { folder.remove() }
        let log = folder.appending("log")
        let owner = try await HikeLog.write(disk, at: log)
        await owner.handOverOnRequest()
        let isOver = Mutex(false)
        // The app's appends: refused while the log is handed over.
        let appended = Task {
            var count = 0
            while !isOver.withLock({ $0 }) {
                do {
                    try await owner.append(Hike(path: "lake"))
                    count += 1
                } catch let error as LogError where error.code == .suspended {
                    try await Task.sleep(for: .milliseconds(1))
                }
            }
            return count
        }
        for _ in 0..<5 {
            try await LogHandover.request(at: log, within: .seconds(30)) {
                let other = try await HikeLog.write(disk, at: log)
                try await other.append(Hike(path: "sea"))
                try await other.close()
            }
            // The holder has the log again.
            let before = owner.view(Hikes.self).kilometres["lake", default: 0]
            try await eventually("appends", is: true) {
                owner.view(Hikes.self).kilometres["lake", default: 0] > before
            }
        }
        isOver.withLock { $0 = true }
        let count = try await appended.value
        #expect(owner.view(Hikes.self).kilometres == ["lake": count, "sea": 5])
        try await owner.close()
    }

    @Test(.verifies("COMP-18"))
    func `a holder that does not hand over is named, after a bounded wait`() async throws {
        let folder = try TemporaryFolder()
        defer { folder.remove() }
        let log = folder.appending("log")
        let owner = try await HikeLog.write(disk, at: log)
        let begun = ContinuousClock.now
        await #expect {
            try await LogHandover.request(at: log, within: .milliseconds(100)) {
                Issue.record("the log is not free")
            }
        } throws: { error in
            (error as? LogError)?.code == .locked
                && "\(error)".contains("not handed over within 0.1 seconds")
                && "\(error)".contains("pid \(getpid())")
        }
        #expect(ContinuousClock.now - begun < .seconds(20))
        try await owner.close()
        // The log is free: no request is needed.
        #expect(try await LogHandover.request(at: log) { 7 } == 7)
    }

    @Test(.verifies("COMP-18"), .enabled(if: FileManager.default.fileExists(atPath: "/proc/locks")))
    func `a store that the app has suspended stays suspended after a request`() async throws {
        let folder = try TemporaryFolder()
        defer { folder.remove() }
        let log = folder.appending("log")
        let owner = try await HikeLog.write(disk, at: log)
        await owner.handOverOnRequest()
        try await LogHandover.request(at: log, within: .seconds(30)) {
            // While the log is handed over.
            try await owner.suspend()
        }
        try await Task.sleep(for: .milliseconds(200))
        await #expect {
            try await owner.append(Hike(path: "lake"))
        } throws: { ($0 as? LogError)?.code == .suspended }
        try await owner.resume()
        try await owner.append(Hike(path: "lake"))
        try await owner.close()
    }
}

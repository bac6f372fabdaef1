// Commands on downloads: every transition from every state, and the removal of old jobs.

import DaybookTestKit
import Foundation
import TestSupport
import Testing

@testable import DaybookOffline

private let numbers = DownloadNumbers(
    currentStep: "Downloading images (1/2)", totalBytes: 10, downloadedBytes: 4)

extension DownloadCommands {
    /// Brings a new job into a state by allowed transitions.
    fileprivate func job(_ city: String, in status: DownloadStatus) async throws -> String {
        let job = try await queue(city)
        switch status {
        case .queued: break
        case .downloading: try await start(job.id)
        case .paused: try await pause(job.id)
        case .completed:
            try await start(job.id)
            try await complete(job.id, totalBytes: 10)
        case .failed:
            try await start(job.id)
            try await fail(job.id, "no", numbers: numbers)
        case .cancelled:
            // Commands remove a job that they cancel; an imported log may contain a cancelled one.
            try await store.append(DownloadCancelled(jobId: job.id))
        }
        return job.id
    }
}

@Suite struct DownloadCommandTests {
    @Test(
        .verifies("DL-2"),
        arguments: DownloadStatus.allCases, ["a clock that is right", "one that was ahead"])
    func `from each state exactly the transitions of the table are allowed`(
        from: DownloadStatus, clockKind: String
    ) async throws {
        let steps:
            [(
                String, Set<DownloadStatus>,
                @Sendable (DownloadCommands, String) async throws -> Void
            )] =
                [
                    ("start", [.queued, .paused], { try await $0.start($1, numbers: numbers) }),
                    ("pause", [.queued, .downloading], { try await $0.pause($1) }),
                    ("resume", [.paused], { try await $0.resume($1) }),
                    ("retry", [.failed], { try await $0.retry($1) }),
                    ("complete", [.downloading], { try await $0.complete($1, totalBytes: 10) }),
                    ("fail", [.downloading], { try await $0.fail($1, "no", numbers: numbers) }),
                    ("cancel", [.queued, .downloading, .paused], { try await $0.cancel($1) }),
                    (
                        "remove", [.completed, .failed, .cancelled],
                        { try await $0.remove($1) }
                    ),
                ]
        for (name, allowed, step) in steps {
            let clock = VirtualClock(milliseconds: 1_000_000)
            clock.advance(by: .hours(2))
            let store = try await OfflineStore.inMemory(clock: { clock.date })
            let id = try await store.downloads.job("oslo", in: from)
            if clockKind != "a clock that is right" { clock.advance(by: .hours(-1)) }
            let before = await store.events.lastDurable
            if allowed.contains(from) {
                try await step(store.downloads, id)
                #expect(store.view(DownloadsView.self)[id]?.status != from, "\(name)")
            } else {
                await #expect(throws: EventError.self, "\(name)") {
                    try await step(store.downloads, id)
                }
                #expect(await store.events.lastDurable == before)
                #expect(store.view(DownloadsView.self)[id]?.status == from)
            }
            try await store.close()
        }
    }

    @Test(.verifies("DL-2")) func `the error for an unknown or removed job names it`() async throws
    {
        let store = try await OfflineStore.inMemory()
        await #expect(throws: EventError(.refused, "there is no download x")) {
            try await store.downloads.pause("x")
        }
        let job = try await store.downloads.queue("oslo")
        try await store.downloads.cancel(job.id)
        await #expect(throws: EventError(.refused, "the download \(job.id) was removed")) {
            try await store.downloads.resume(job.id)
        }
        await #expect(throws: EventError.self) { try await store.downloads.queue("") }
        let other = try await store.downloads.job("oslo", in: .downloading)
        await #expect(throws: EventError.self) {
            try await store.downloads.fail(other, "", numbers: numbers)
        }
        try await store.close()
    }

    @Test(.verifies("DL-3"))
    func `queueing a city again returns its unfinished job`() async throws {
        let store = try await OfflineStore.inMemory()
        let first = try await store.downloads.queue("oslo", isExplicit: false)
        #expect(try await store.downloads.queue("oslo", isExplicit: false) == first)
        #expect(await store.events.lastDurable == Position(1))
        // The user asks for a city that was queued automatically.
        let explicit = try await store.downloads.queue("oslo")
        #expect(explicit.id == first.id)
        #expect(explicit.isExplicit)
        #expect(explicit.status == .queued)
        #expect(explicit.startedAt == first.startedAt)
        #expect(try await store.downloads.queue("oslo", isExplicit: false).isExplicit)
        // After the completion a call creates a new job.
        try await store.downloads.start(first.id)
        try await store.downloads.complete(first.id, totalBytes: 1)
        let second = try await store.downloads.queue("oslo")
        #expect(second.id != first.id)
        #expect(store.view(DownloadsView.self).jobs(of: "oslo").count == 2)
        try await store.close()
    }

    @Test(.verifies("DL-3"))
    func `queueing a paused job resumes it, and a running job continues`() async throws {
        let clock = VirtualClock(milliseconds: 1_000_000)
        clock.advance(by: .hours(2))
        let store = try await OfflineStore.inMemory(clock: { clock.date })
        let job = try await store.downloads.queue("oslo", isExplicit: false)
        try await store.downloads.pause(job.id)
        #expect(try await store.downloads.queue("oslo", isExplicit: false).status == .paused)
        #expect(try await store.downloads.queue("oslo").status == .queued)
        let other = try await store.downloads.queue("porto", isExplicit: false)
        try await store.downloads.start(other.id, numbers: numbers)
        clock.advance(by: .hours(-1))
        let asked = try await store.downloads.queue("porto")
        #expect(asked.status == .downloading)
        #expect(asked.isExplicit)
        #expect(asked.downloadedBytes == 4)
        try await store.close()
    }

    @Test(.verifies("DL-2")) func `a failed job is not retried while its city has another job`()
        async throws
    {
        let store = try await OfflineStore.inMemory()
        let failed = try await store.downloads.job("oslo", in: .failed)
        let other = try await store.downloads.queue("oslo")
        #expect(other.id != failed)
        await #expect(throws: EventError.self) { try await store.downloads.retry(failed) }
        try await store.downloads.cancel(other.id)
        try await store.downloads.retry(failed)
        #expect(store.view(DownloadsView.self)[failed]?.status == .queued)
        try await store.close()
    }

    @Test(.verifies("DL-4"))
    func `old jobs are removed: completed ones after a day, failed ones after a week`()
        async throws
    {
        let clock = VirtualClock(milliseconds: 1_000_000)
        let store = try await OfflineStore.inMemory(clock: { clock.date })
        let completed = try await store.downloads.job("a", in: .completed)
        let failed = try await store.downloads.job("b", in: .failed)
        let cancelled = try await store.downloads.job("c", in: .cancelled)
        let paused = try await store.downloads.job("d", in: .paused)
        #expect(try await store.downloads.cleanUp() == 1)
        #expect(store.view(DownloadsView.self).isRemoved(cancelled))
        clock.advance(by: .hours(23))
        #expect(try await store.downloads.cleanUp() == 0)
        clock.advance(by: .hours(1))
        #expect(try await store.downloads.cleanUp() == 1)
        #expect(store.view(DownloadsView.self).isRemoved(completed))
        clock.advance(by: .hours(6 * 24 - 1))
        #expect(try await store.downloads.cleanUp() == 0)
        clock.advance(by: .hours(1))
        #expect(try await store.downloads.cleanUp() == 1)
        #expect(store.view(DownloadsView.self).isRemoved(failed))
        clock.advance(by: .hours(10_000))
        #expect(try await store.downloads.cleanUp() == 0)
        #expect(store.view(DownloadsView.self).jobs.map(\.id) == [paused])
        let before = await store.events.lastDurable
        #expect(try await store.downloads.cleanUp(Timestamp(milliseconds: .max)) == 0)
        #expect(await store.events.lastDurable == before)
        try await store.close()
    }

    @Test(.verifies("DL-4"))
    func `jobs that ended while the clock was ahead are removed, too`() async throws {
        let clock = VirtualClock(milliseconds: 1_800_000_000_000)
        let store = try await OfflineStore.inMemory(clock: { clock.date })
        _ = try await store.downloads.job("a", in: .completed)
        _ = try await store.downloads.job("b", in: .failed)
        clock.advance(by: .days(-2))
        #expect(try await store.downloads.cleanUp() == 1)
        #expect(store.view(DownloadsView.self).jobs.map(\.status) == [.failed])
        clock.advance(by: .days(-6))
        #expect(try await store.downloads.cleanUp() == 1)
        try await store.close()
    }

    @Test(.verifies("DL-5"))
    func `the content of a download and its completion are one commit, or neither is recorded`()
        async throws
    {
        struct Unwilling: Error {}
        let store = try await OfflineStore.inMemory()
        let id = try await store.downloads.job("oslo", in: .downloading)
        let before = await store.events.lastDurable
        await #expect(throws: Unwilling.self) {
            try await store.downloads.complete(id, totalBytes: 1) { transaction in
                try transaction.append(CitySaved(userId: "u", cityId: "oslo"))
                throw Unwilling()
            }
        }
        #expect(await store.events.lastDurable == before)
        try await store.downloads.complete(id, totalBytes: 1) { transaction in
            try transaction.append(CitySaved(userId: "u", cityId: "oslo"))
        }
        #expect(store.view(CitiesView.self).isSaved("oslo", by: "u"))
        #expect(store.view(DownloadsView.self)[id]?.status == .completed)
        try await store.close()
    }

    @Test(.verifies("DL-6")) func `all jobs of a city are removed in a transaction of the caller`()
        async throws
    {
        let store = try await OfflineStore.inMemory()
        for status in [.completed, .failed, .downloading] as [DownloadStatus] {
            _ = try await store.downloads.job("oslo", in: status)
        }
        _ = try await store.downloads.queue("porto")
        try await store.write { transaction in
            for job in transaction.view(DownloadsView.self).jobs(of: "oslo") {
                try transaction.append(DownloadRemoved(jobId: job.id))
            }
        }
        #expect(store.view(DownloadsView.self).jobs.map(\.cityId) == ["porto"])
        try await store.close()
    }

    @Test(.verifies("DL-1")) func `queries deliver every change of a job`() async throws {
        let store = try await OfflineStore.inMemory()
        var seen = store.downloads.active.changes.makeAsyncIterator()
        #expect(await seen.next() == [])
        let job = try await store.downloads.queue("oslo")
        #expect(await seen.next() == [job])
        try await store.downloads.pause(job.id)
        #expect(await seen.next() == [])
        #expect(store.downloads.jobs(of: "oslo").current.map(\.status) == [.paused])
        #expect(store.downloads.jobs(.paused).current.map(\.id) == [job.id])
        #expect(store.downloads.job(job.id).current?.pauseReason == .user)
        try await store.close()
    }
}

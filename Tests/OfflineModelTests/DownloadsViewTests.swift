// DownloadsView: folding, queries and retention.

import DaybookTestKit
import EventGenerators
import EventSourcing
import Foundation
import TestSupport
import Testing

@testable import DaybookOffline

private let (a, b, c) = (
    "00000000-0000-4000-8000-00000000000a", "00000000-0000-4000-8000-00000000000b",
    "00000000-0000-4000-8000-00000000000c"
)

private struct Bench {
    var history = EventHistory()
    var view = DownloadsView()

    @discardableResult
    mutating func add(_ payload: some EventPayload, at milliseconds: Int64) throws -> Event {
        let event = history.addOwn(
            try EventDraft(payload, time: Timestamp(milliseconds: milliseconds)))
        view.fold(event)
        return event
    }

    func superseded(by indices: Int...) -> Retention {
        .superseded(by: indices.map { history.events[$0].lwwTimestamp })
    }
}

private func numbers(_ done: Int, of total: Int) -> DownloadNumbers {
    DownloadNumbers(
        currentStep: "Downloading images (1/2)", totalBytes: total, downloadedBytes: done)
}

@Suite struct DownloadsViewTests {
    @Test(.verifies("DL-1", "VIEW-11"))
    func `a job has its last state, with the progress at that time`() throws {
        var bench = Bench()
        try bench.add(DownloadQueued(jobId: a, cityId: "oslo", isExplicit: true), at: 1_000)
        #expect(
            bench.view.rows().map { String(decoding: $0.json, as: UTF8.self) } == [
                #"{"id":"\#(a)","cityId":"oslo","isExplicit":true,"status":"QUEUED","progress":0,"#
                    + #""currentStep":"Initializing...","totalBytes":0,"downloadedBytes":0,"#
                    + #""startedAt":"1970-01-01T00:00:01.000Z","completedAt":null,"#
                    + #""errorMessage":null,"pauseReason":null}"#
            ])
        try bench.add(DownloadStarted(jobId: a, numbers: .initial), at: 2_000)
        try bench.add(
            DownloadPaused(jobId: a, numbers: numbers(199, of: 200), reason: .cellular), at: 3_000)
        var job = try #require(bench.view[a])
        #expect(job.status == .paused)
        #expect(job.pauseReason == .cellular)
        #expect(job.progress == 99)
        #expect(job.currentStep == "Downloading images (1/2)")
        #expect(job.completedAt == nil)
        #expect(job.errorMessage == nil)
        try bench.add(
            DownloadFailed(jobId: a, numbers: numbers(5, of: 10), errorMessage: "no"), at: 4_000)
        job = try #require(bench.view[a])
        #expect(job.status == .failed)
        #expect(job.errorMessage == "no")
        #expect(job.progress == 50)
        try bench.add(DownloadCompleted(jobId: a, totalBytes: 10), at: 5_000)
        job = try #require(bench.view[a])
        #expect(job.status == .completed)
        #expect(job.completedAt == Timestamp(milliseconds: 5_000))
        #expect(job.progress == 100)
        #expect(job.downloadedBytes == 10)
        #expect(job.totalBytes == 10)
        #expect(job.errorMessage == nil)
        #expect(job.pauseReason == nil)
        #expect(job.startedAt == Timestamp(milliseconds: 1_000))
        try bench.add(DownloadRemoved(jobId: a), at: 1)
        #expect(bench.view[a] == nil)
        #expect(bench.view.isRemoved(a))
        #expect(bench.view.rows().isEmpty)
        try bench.add(DownloadQueued(jobId: a, cityId: "oslo", isExplicit: true), at: 9_000)
        #expect(bench.view[a] == nil)
    }

    @Test(.verifies("DL-1")) func `progress never traps for any numbers`() throws {
        var bench = Bench()
        try bench.add(DownloadQueued(jobId: a, cityId: "c", isExplicit: true), at: 1)
        for (done, total, progress) in [
            (0, 0, 0), (0, 1, 0), (1, 1, 100), (Int.max, Int.max, 100), (.max - 1, .max, 99),
            (1, 3, 33), (2, 3, 66),
        ] {
            try bench.add(
                DownloadStarted(jobId: a, numbers: numbers(done, of: total)),
                at: Int64(bench.history.events.count + 1))
            #expect(bench.view[a]?.progress == progress)
        }
        // The total is at least the downloaded bytes; negative numbers become 0.
        #expect(numbers(7, of: 3).totalBytes == 7)
        #expect(numbers(-7, of: -3) == numbers(0, of: 0))
    }

    @Test(.verifies("DL-1", "VIEW-11"))
    func `jobs are found by id, by city and by state, and the active ones are in download order`()
        throws
    {
        var bench = Bench()
        try bench.add(DownloadQueued(jobId: a, cityId: "oslo", isExplicit: false), at: 1)
        try bench.add(DownloadQueued(jobId: b, cityId: "oslo", isExplicit: true), at: 2)
        try bench.add(DownloadQueued(jobId: c, cityId: "porto", isExplicit: false), at: 3)
        try bench.add(DownloadStarted(jobId: c, numbers: .initial), at: 4)
        #expect(bench.view.active.map(\.id) == [b, a, c])
        #expect(bench.view.jobs(of: "oslo").map(\.id) == [a, b])
        #expect(bench.view.jobs(.downloading).map(\.id) == [c])
        #expect(bench.view.count(.queued) == 2)
        #expect(bench.view.count(.failed) == 0)
        try bench.add(DownloadCancelled(jobId: b), at: 5)
        // A later event with another city moves the job there.
        try bench.add(DownloadQueued(jobId: a, cityId: "porto", isExplicit: false), at: 6)
        #expect(bench.view.active.map(\.id) == [a, c])
        #expect(bench.view.jobs(of: "oslo").map(\.id) == [b])
        #expect(bench.view.jobs(of: "porto").map(\.id) == [a, c])
        let read = try DownloadsView(encodedState: try #require(try bench.view.encodedState()))
        #expect(read.jobs(of: "porto") == bench.view.jobs(of: "porto"))
        #expect(read.active == bench.view.active)
        #expect(read.jobs == bench.view.jobs)
    }

    @Test(.verifies("DL-23"))
    func `jobs that were queued in the same millisecond are in the order of their events`() throws {
        var bench = Bench()
        for id in [c, a, b] {
            try bench.add(DownloadQueued(jobId: id, cityId: "oslo", isExplicit: true), at: 1)
        }
        #expect(bench.view.active.map(\.id) == [c, a, b])
        #expect(bench.view.jobs(of: "oslo").map(\.id) == [c, a, b])
    }

    @Test(.verifies("VIEW-2", "VIEW-11"))
    func `a state that arrives before its job waits for it`() throws {
        var bench = Bench()
        try bench.add(DownloadStarted(jobId: a, numbers: numbers(1, of: 2)), at: 5)
        #expect(bench.view[a] == nil)
        #expect(bench.view.jobs(.downloading).isEmpty)
        try bench.add(DownloadQueued(jobId: a, cityId: "oslo", isExplicit: true), at: 2)
        #expect(bench.view[a]?.status == .downloading)
        #expect(bench.view[a]?.startedAt == Timestamp(milliseconds: 2))
    }

    @Test(
        .verifies("EVT-7"),
        arguments: [
            (
                "queued",
                #"{"jobId":"00000000-0000-4000-8000-00000000000A","cityId":"c","isExplicit":true}"#
            ),
            ("queued", #"{"jobId":"job","cityId":"c","isExplicit":true}"#),
            ("queued", #"{"jobId":"\#(a)","cityId":"","isExplicit":true}"#),
            ("queued", #"{"jobId":"\#(a)","cityId":"c"}"#),
            ("queued", #"{"jobId":"\#(a)","cityId":"c","isExplicit":null}"#),
            ("started", #"{"jobId":"\#(a)","currentStep":"x","totalBytes":1}"#),
            ("started", #"{"jobId":"\#(a)","currentStep":"x","totalBytes":1,"downloadedBytes":2}"#),
            (
                "started",
                #"{"jobId":"\#(a)","currentStep":"x","totalBytes":1.5,"downloadedBytes":1}"#
            ),
            ("paused", #"{"jobId":"\#(a)","currentStep":"x","totalBytes":1,"downloadedBytes":1}"#),
            (
                "paused",
                #"{"jobId":"\#(a)","currentStep":"x","totalBytes":1,"downloadedBytes":1,"reason":"rain"}"#
            ),
            ("completed", #"{"jobId":"\#(a)"}"#),
            ("completed", #"{"jobId":"\#(a)","totalBytes":-1}"#),
            (
                "failed",
                #"{"jobId":"\#(a)","currentStep":"","totalBytes":1,"downloadedBytes":1,"errorMessage":""}"#
            ),
            ("failed", #"{"jobId":"\#(a)","currentStep":"","totalBytes":1,"downloadedBytes":1}"#),
            ("cancelled", "{}"), ("removed", #"{"jobId":7}"#),
        ])
    func `data that break a rule are refused when recorded, and counted when folded`(
        type: String, data: String
    ) throws {
        var draft = EventDraft(
            type: "daybook.download.\(type)", data: .json(Array(data.utf8)))
        var view = DownloadsView()
        var history = EventHistory()
        view.fold(history.addOwn(draft))
        #expect(view.ignored == 1)
        #expect(view.rows().isEmpty)
        #expect(view.retention(of: history.events[0]) == .needed(.notUnderstood))
        #expect {
            try OfflineModel.catalogue.normalise(&draft)
        } throws: {
            ($0 as? EventError)?.code == .invalidData
        }
    }

    @Test(.verifies("EVT-7"))
    func `events of downloads stay on the device, in the lane of their job`()
        throws
    {
        for payload in [
            DownloadQueued(jobId: a, cityId: "c", isExplicit: false), DownloadRemoved(jobId: a),
            DownloadPaused(jobId: a, numbers: .initial, reason: .user),
        ] as [any EventPayload] {
            var draft = try EventDraft(payload)
            try OfflineModel.catalogue.normalise(&draft)
            #expect(draft.subject == a)
            #expect(OfflineModel.catalogue.lane(of: draft) == a)
            #expect(OfflineModel.catalogue[draft.type]?.action == nil)
        }
    }

    @Test(.verifies("CMP-3"))
    func `a job needs the winners of its state and origin, and the first event that queued it`()
        throws
    {
        var bench = Bench()
        try bench.add(DownloadQueued(jobId: a, cityId: "c", isExplicit: false), at: 1)
        try bench.add(DownloadStarted(jobId: a, numbers: .initial), at: 2)
        try bench.add(DownloadQueued(jobId: a, cityId: "c", isExplicit: false), at: 3)
        try bench.add(DownloadQueued(jobId: a, cityId: "c", isExplicit: true), at: 4)
        try bench.add(DownloadCompleted(jobId: a, totalBytes: 1), at: 5)
        #expect(
            bench.history.events.map(bench.view.retention) == [
                .needed(.current), bench.superseded(by: 4), bench.superseded(by: 4, 3, 0),
                .needed(.current), .needed(.current),
            ])
        try bench.add(DownloadRemoved(jobId: a), at: 9)
        try bench.add(DownloadRemoved(jobId: a), at: 8)
        #expect(
            bench.history.events.map(bench.view.retention)[..<5].allSatisfy {
                $0 == bench.superseded(by: 6)
            })
        #expect(
            bench.history.events.map(bench.view.retention)[5...] == [
                .needed(.deletion), .needed(.deletion),
            ])
        #expect(DownloadsView().retention(of: bench.history.events[0]) == .needed(.current))
    }

    @Test(.verifies("CMP-3", "VIEW-2", "VIEW-10"))
    func `a history without its superseded events folds to the same state in any order`() throws {
        try Property.check("downloads are a fold of registers", runs: 400) { choices in
            var history = EventHistory()
            for _ in 0..<choices.int(in: 1...24) {
                var draft = try EventDraft(choices.downloadPayload())
                draft.time = Timestamp(milliseconds: Int64(choices.int(in: 0...6)))
                history.addOwn(draft)
            }
            choices.note(
                "\(history.events.map { "\($0.type) \($0.lwwTimestamp.time.milliseconds)" })")
            let cut = choices.int(in: 0...history.events.count)
            let (early, late) = (history.events[..<cut], history.events[cut...])
            let state = DownloadsView(folding: early)
            let kept = early.filter {
                if case .superseded = state.retention(of: $0) { false } else { true }
            }
            let all = DownloadsView(folding: history.events)
            try #require(
                try DownloadsView(folding: kept + late).encodedState() == all.encodedState())
            var shuffled = history.events
            for index in shuffled.indices.dropLast() {
                shuffled.swapAt(index, choices.int(in: index...shuffled.count - 1))
            }
            let other = DownloadsView(folding: shuffled)
            try #require(try other.encodedState() == all.encodedState())
            try #require(other.rows() == all.rows())
            // The indexes agree with the jobs.
            for status in DownloadStatus.allCases {
                try #require(
                    Set(all.jobs(status)) == Set(all.jobs.filter { $0.status == status }))
            }
            for city in Set(all.jobs.map(\.cityId)) {
                try #require(
                    Set(all.jobs(of: city))
                        == Set(all.jobs.filter { EntityID($0.cityId) == EntityID(city) }))
            }
        }
    }
}

// The log lines, metrics and spans of a store and a download manager, and the data that
// they never contain.

import DaybookOffline
import DaybookTestKit
import Foundation
import Logging
import Synchronization
import TestSupport
import Testing
import Tracing

@testable import Telemetry

private struct Noted: EventPayload, Codable {
    static let type = "com.example.noted"
    var text: String
}

private struct NoteCount: Projection, Codable {
    static let name = "note-count"
    static let version = 1
    private(set) var count = 0

    mutating func fold(_ event: Event) { if event.type == Noted.type { count += 1 } }
}

/// Needs 110 ms for each event, more than a commit of one event may take without a warning.
private struct SlowCount: Projection, Codable {
    static let name = "slow-count"
    static let version = 1
    private(set) var count = 0

    mutating func fold(_ event: Event) {
        Thread.sleep(forTimeInterval: 0.11)
        count += 1
    }
}

/// A server that has every city, or none.
private struct Cities: CityManifestSource {
    var refusal: DownloadError?

    func manifest(of cityId: String) async throws -> CityManifest {
        if let refusal { throw refusal }
        let data = CityData(
            id: cityId, name: "Lisbon", country: "Portugal", description: "Hills and trams.",
            costOfLiving: 62.5, internetSpeed: 110, safetyRating: 4.5, climate: "mild")
        return CityManifest(cityId: cityId, cityData: data.json, images: [])
    }
}

@Suite struct TelemetryTests {
    private static func open(
        _ files: InMemoryFileSystem = InMemoryFileSystem(), at path: String = "/log",
        account: String? = nil
    ) async throws -> EventStore {
        try await .open(
            at: URL(filePath: path), account: account,
            rules: [.of(Noted.self, action: "NOTE")], views: [NoteCount.self],
            environment: LogEnvironment(fileSystem: files))
    }

    /// A note of 200,000 bytes that do not compress: more than the space that a new segment has.
    private static func large(beginning text: String = "") -> Noted {
        let bytes = Data((0..<150_000).map { _ in UInt8.random(in: .min ... .max) })
        return Noted(text: text + bytes.base64EncodedString())
    }

    /// Downloads a city until its job has ended.
    private static func download(from source: Cities) async throws -> DownloadJob {
        let store = try await OfflineStore.inMemory()
        let manager = DownloadManager(
            store, source: source, user: "ada", reachability: AlwaysReachable())
        let work = Task { try await manager.run() }
        let queued = try await store.downloads.queue("lisbon")
        try await eventually("job is unfinished", is: false) {
            store.view(DownloadsView.self)[queued.id]?.status.isUnfinished
        }
        work.cancel()
        try await work.value
        let job = try #require(store.view(DownloadsView.self)[queued.id])
        try await store.close()
        return job
    }

    // MARK: Durations, amounts and spans

    @Test func `opening, appending, compacting and syncing record durations and amounts`()
        async throws
    {
        let backends = Backends()
        try await backends.observe {
            let files = InMemoryFileSystem()
            var store = try await Self.open(files)
            try await store.append(Noted(text: "hello"))
            try await store.close()
            store = try await Self.open(files)
            try await store.checkpoint()
            try await store.compact()
            try await store.sync(over: InMemorySyncServer())
            try await store.close()
        }
        for operation in Instruments.Operation.allCases where operation != .download {
            #expect(try backends.durations(of: operation).allSatisfy { $0 >= 0 })
            #expect(try !backends.durations(of: operation).isEmpty, "\(operation)")
            #expect(backends.failures(of: operation) == 0, "\(operation)")
            let span = try #require(backends.span(of: operation), "\(operation)")
            #expect(span.status == nil, "\(operation)")
            #expect(
                backends.lines.contains { $0.contains("\(operation.rawValue) finished") },
                "\(operation)")
        }
        // The note, and at least one record of the server's answer.
        #expect(backends.total(of: .committedEvents) >= 2)
        for amount in [
            Instruments.Amount.committedBytes, .checkpointBytes, .sentBytes, .receivedBytes,
        ] {
            #expect(backends.total(of: amount) > 0, "\(amount)")
        }
    }

    @Test func `opening a log for reading records durations and events`() async throws {
        let files = InMemoryFileSystem()
        let first = try await Self.open(files)
        try await first.append(Noted(text: "first"))
        // Stores the needs of the view. Otherwise a checkpoint in the background may come before the reader.
        try await first.close()
        let store = try await Self.open(files)
        try await store.append(contentsOf: [Noted(text: "hello"), Noted(text: "goodbye")])
        let backends = Backends()
        try await backends.observe {
            let reader = try await ReadOnlyStore.open(
                at: URL(filePath: "/log"), views: [NoteCount.self],
                environment: LogEnvironment(fileSystem: files))
            #expect(await reader.view(NoteCount.self).count == 3)
        }
        for operation in [Instruments.Operation.open, .fold] {
            #expect(try backends.durations(of: operation).count == 1, "\(operation)")
        }
        #expect(backends.total(of: .foldedEvents) == 2)
        try await store.close()
    }

    @Test func `a download records its duration`() async throws {
        let backends = Backends()
        let job = try await backends.observe { try await Self.download(from: Cities()) }
        #expect(job.status == .completed)
        #expect(try backends.durations(of: .download).count == 1)
        #expect(backends.failures(of: .download) == 0)
        #expect(backends.span(of: .download) != nil)
    }

    @Test func `a span of a part is a child of the operation's span, also across threads`()
        async throws
    {
        let backends = Backends()
        try await backends.observe {
            let store = try await Self.open()
            try await store.append(Noted(text: "hello"))
            try await store.sync(over: InMemorySyncServer())
            try await store.close()
        }
        for (part, whole) in [
            (Instruments.Operation.restore, .open), (.fold, .open), (.syncRequest, .sync),
        ] as [(Instruments.Operation, Instruments.Operation)] {
            let parent = try #require(backends.span(of: whole)?.spanID)
            #expect(backends.span(of: part)?.parentSpanID == parent, "\(part)")
        }
        // Several appends may share a commit.
        #expect(try #require(backends.span(of: .commit)).parentSpanID == nil)
    }

    // MARK: Failures

    @Test func `a commit that fails counts as a failure, with the error's code`() async throws {
        let backends = Backends()
        try await backends.observe {
            let files = InMemoryFileSystem()
            let store = try await Self.open(files)
            files.setQuota(files.image.values.reduce(0) { $0 + $1.count })
            await #expect(throws: LogError.self) { try await store.append(Self.large()) }
            files.setQuota(nil)
            try await store.close()
        }
        #expect(backends.failures(of: .commit) == 1)
        #expect(backends.total(of: .committedEvents) == 0)
        let span = try #require(backends.span(of: .commit))
        #expect(span.status?.code == .error)
        #expect(span.errors.isEmpty)
        #expect(
            backends.lines.contains {
                $0.contains("daybook.commit failed") && $0.contains("LogError.disk-full")
            })
    }

    @Test func `a request without an answer and a refused download count as failures`()
        async throws
    {
        let backends = Backends()
        let job = try await backends.observe {
            let server = InMemorySyncServer()
            server.isReachable = false
            let store = try await Self.open()
            try await store.append(Noted(text: "hello"))
            // It ends when it would wait for its second attempt.
            _ = try await Replayer(store, transport: server, sleep: noTimers).run()
            try await store.close()
            return try await Self.download(from: Cities(refusal: DownloadError(.refused, "no")))
        }
        #expect(job.status == .failed)
        #expect(backends.failures(of: .syncRequest) > 0)
        #expect(backends.total(of: .sentBytes) == 0)
        // The report says why it ended: no error was thrown.
        #expect(backends.failures(of: .sync) == 0)
        #expect(backends.failures(of: .download) == 1)
        #expect(backends.lines.contains { $0.contains("DownloadError.refused") })
    }

    @Test func `a request that the server refuses counts as a failure, and its reason is logged`()
        async throws
    {
        struct Refusal: Transport {
            func send(_ request: TransportRequest, token: String?) -> TransportReply {
                TransportReply(status: 401)
            }
        }
        let backends = Backends()
        try await backends.observe {
            let store = try await Self.open()
            try await store.append(Noted(text: "hello"))
            try await store.sync(over: Refusal())
            try await store.close()
        }
        #expect(backends.failures(of: .syncRequest) > 0)
        #expect(backends.lines.contains { $0.contains("http-401") })
        #expect(backends.lines.contains { $0.contains("does not accept the token") })
    }

    @Test func `cancelled work is no failure`() async throws {
        let backends = Backends()
        let instruments = try await backends.observe { Instruments() }
        await #expect(throws: CancellationError.self) {
            try await instruments.measure(.sync) { () async throws in throw CancellationError() }
        }
        #expect(try backends.durations(of: .sync).count == 1)
        #expect(backends.failures(of: .sync) == 0)
        #expect(backends.span(of: .sync)?.status == nil)
        #expect(backends.lines.contains { $0.contains("daybook.sync was cancelled") })
    }

    @Test func `an error is named by its type and the constant that is its code`() {
        struct Verbose: Error { var code = "xyzzy" }
        enum Named: Error { case because(String) }
        #expect(Instruments.kind(of: LogError(.corrupt, path: "p", "d")) == "LogError.corrupt")
        #expect(Instruments.kind(of: EventError(.idReused, "d")) == "EventError.id-reused")
        #expect(Instruments.kind(of: Verbose()) == "Verbose")
        #expect(Instruments.kind(of: Named.because("xyzzy")) == "Named")
    }

    // MARK: Secrecy

    @Test func `no recorded data leaves the process, whatever fails`() async throws {
        let secret = "xyzzy-3q2"
        let backends = Backends()
        let id = try await backends.observe {
            let files = InMemoryFileSystem()
            let path = "/\(secret)-folder"
            let store = try await Self.open(files, at: path, account: secret)
            let id = UUID()
            try await store.append(contentsOf: [try EventDraft(Noted(text: secret), id: id)])
            await #expect(throws: EventError.self) {
                try await store.append(contentsOf: [
                    try EventDraft(Noted(text: secret + "!"), id: id)
                ])
            }
            await #expect(throws: LogError.self) {
                try await Self.open(files, at: path, account: secret)
            }
            let server = InMemorySyncServer { draft in
                Verdict(id: draft.id, status: .rejected, code: secret, detail: secret)
            }
            try await store.sync(over: server, credentials: BearerToken(secret))
            try await store.checkpoint()
            try await store.compact()
            files.setQuota(files.image.values.reduce(0) { $0 + $1.count })
            await #expect(throws: LogError.self) {
                try await store.append(Self.large(beginning: secret))
            }
            files.setQuota(nil)
            try await store.close()
            await #expect(throws: LogError.self) {
                try await Self.open(files, at: path, account: secret + "!")
            }
            _ = try await Self.download(from: Cities(refusal: DownloadError(.refused, secret)))
            return id
        }
        #expect(backends.failures(of: .open) == 2)
        #expect(backends.failures(of: .commit) == 1)
        let everything = backends.everything
        #expect(everything.contains("daybook.commit"))
        #expect(!everything.contains(secret))
        #expect(!everything.lowercased().contains(id.uuidString.lowercased()))
    }

    // MARK: Names and levels

    @Test func `at the default log level a store logs nothing, even if it fails`() async throws {
        let backends = Backends(logLevel: .info)
        try await backends.observe {
            let files = InMemoryFileSystem()
            let store = try await Self.open(files)
            try await store.append(Noted(text: "hello"))
            await #expect(throws: LogError.self) { try await Self.open(files) }
            try await store.close()
        }
        #expect(backends.failures(of: .open) == 1)
        #expect(backends.lines.isEmpty)
    }

    // In real time, as folding is measured: a sleep takes its time at least.
    @Test func `a slow view is named at the level warning`() async throws {
        let backends = Backends(logLevel: .info)
        try await backends.observe {
            let store = try await EventStore.inMemory(views: [NoteCount.self, SlowCount.self])
            try await store.append(Noted(text: "hello"))
            try await store.close()
        }
        #expect(backends.lines.count == 1)
        #expect(backends.lines.first?.contains("warning folding a commit took long") == true)
        #expect(backends.lines.first?.contains("slow-count") == true)
    }

    @Test func `a closure of write that keeps another call waiting is named at the level warning`()
        async throws
    {
        let backends = Backends(logLevel: .info)
        try await backends.observe {
            let store = try await EventStore.open(
                at: URL(filePath: "/log"), views: [NoteCount.self],
                environment: LogEnvironment(fileSystem: InMemoryFileSystem(), sleep: { _ in }))
            let waiting = Mutex<Task<Void, any Error>?>(nil)
            let handler = backends.handler
            try await store.write { _ in
                waiting.withLock {
                    $0 = Task { try await store.append(Noted(text: "hello")) }
                }
                // Ends after a minute if no line is logged, so that the test fails and does not hang.
                for _ in 0..<60_000 where handler.entries.isEmpty {
                    Thread.sleep(forTimeInterval: 0.001)
                }
            }
            try await waiting.withLock { $0 }?.value
            #expect(store.view(NoteCount.self).count == 1)
            try await store.close()
        }
        #expect(backends.lines.count == 1)
        #expect(backends.lines.first?.contains("a closure of write(_:) has run for 2 s") == true)
    }

    @Test func `without a logger of the task, the label is daybook`() {
        #expect(Instruments().logger.label == "daybook")
    }

    @Test func `each name is used once, and the article has it`() throws {
        let root = URL(filePath: #filePath).deletingLastPathComponent()
            .deletingLastPathComponent().deletingLastPathComponent()
        let article = try String(
            contentsOf: root.appending(path: "Sources/Daybook/Daybook.docc/Instrumentation.md"),
            encoding: .utf8)
        let labels =
            Instruments.Operation.allCases.flatMap { [$0.durationLabel, $0.failuresLabel] }
            + Instruments.Amount.allCases.map(\.rawValue)
        #expect(Set(labels).count == labels.count)
        let names =
            Instruments.Operation.allCases.map(\.rawValue)
            + Instruments.Amount.allCases.map(\.rawValue)
        for name in names { #expect(article.contains("| `\(name)` |"), "\(name)") }
    }
}

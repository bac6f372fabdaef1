// Parts of the server that no client can observe: the number of storage checks, the memory of a reply.
// Spec/operations/operating.md, OPS-7 and OPS-21.

import EventSourcing
import Foundation
import Hummingbird
import NIOCore
import NIOPosix
import SyncServerStorage
import Synchronization
import TestSupport
import Testing

@testable import syncserver

@Suite struct ServerPartTests {
    /// A storage that counts its readiness checks, which end when a hundred probes have begun.
    private final class CountingStorage: EventStorage {
        let checks = Mutex(0)
        let probes = Mutex(0)
        let failure: StorageError?

        init(_ failure: StorageError?) { self.failure = failure }

        func append(
            _ batch: [ReceivedEvent], account: String, check: @Sendable () throws -> Void
        ) -> [EventVerdict] { [] }
        func page(
            account: String, source: UUID?, after cursor: EventCursor?, limit: Int
        ) -> ServedPage { ServedPage(after: .serial(0)) }
        let signals = AccountSignals()
        let restores = Restores()
        func forwardSignals() async {}
        func lastSerials(of accounts: [String]) -> [EntityID: Int64] { [:] }
        func checkReadiness() async throws {
            checks.withLock { $0 += 1 }
            try await eventually("probes", where: { $0 >= 100 }) { probes.withLock { $0 } }
            if let failure { throw failure }
        }
        func close() {}
    }

    /// A storage that does not answer until it is released.
    private final class SilentStorage: EventStorage {
        let gate = Mutex(false)

        func append(
            _ batch: [ReceivedEvent], account: String, check: @Sendable () throws -> Void
        ) -> [EventVerdict] { [] }
        func page(
            account: String, source: UUID?, after cursor: EventCursor?, limit: Int
        ) -> ServedPage { ServedPage(after: .serial(0)) }
        let signals = AccountSignals()
        let restores = Restores()
        func forwardSignals() async {}
        func lastSerials(of accounts: [String]) -> [EntityID: Int64] { [:] }
        func checkReadiness() async throws {
            try await eventually("the storage is released", is: true) { gate.withLock { $0 } }
        }
        func close() {}
    }

    @Test(.verifies("OPS-7")) func `a probe has a limited wait for the storage`() async throws {
        let storage = SilentStorage()
        let probe = ReadinessProbe(storage, timeout: .milliseconds(20))
        for _ in 0..<3 { await #expect(throws: StorageError.self) { try await probe.check() } }
        storage.gate.withLock { $0 = true }
        func failure() async -> String? {
            do {
                try await probe.check()
                return nil
            } catch { return "\(error)" }
        }
        try await eventually("failure of the probe", is: nil) { await failure() }
    }

    @Test(.verifies("OPS-7"), arguments: [nil, StorageError(.failed, "failure")])
    func `probes share one check of the storage for a time, whatever its result`(
        failure: StorageError?
    ) async throws {
        let storage = CountingStorage(failure)
        let probe = ReadinessProbe(
            storage, interval: .seconds(3_600), timeout: .seconds(3_600))
        func expectResult() async {
            storage.probes.withLock { $0 += 1 }
            do {
                try await probe.check()
                #expect(failure == nil)
            } catch { #expect(error as? StorageError == failure) }
        }
        await withTaskGroup { group in
            for _ in 0..<100 { group.addTask { await expectResult() } }
        }
        await expectResult()
        #expect(storage.checks.withLock { $0 } == 1)
        let eager = ReadinessProbe(storage, interval: .zero)
        for _ in 0..<2 { try? await eager.check() }
        #expect(storage.checks.withLock { $0 } == 3)
    }

    /// A writer that records the pieces.
    private struct Pieces: ResponseBodyWriter {
        final class Written: Sendable {
            let buffers = Mutex<[ByteBuffer]>([])
        }
        let written = Written()

        mutating func write(_ buffer: ByteBuffer) async throws {
            written.buffers.withLock { $0.append(buffer) }
        }
        consuming func finish(_ trailingHeaders: HTTPFields?) async throws {}
    }

    @Test(
        .verifies("PUSH-1"),
        arguments: [
            ("text/event-stream", true), ("Text/Event-Stream; charset=utf-8 ; Q=0.3", true),
            ("text/*", true), ("application/json, text/event-stream", true),
            ("text/event-stream, application/cloudevents-batch+json", true),
            ("text/event-stream, */*", true), ("*/*;q=0.1, text/event-stream;q=0.2", true),
            ("", false), ("*/*", false), ("text/html, */*;q=0.8", false), ("text/*, */*", false),
            ("text/event-stream;q=0", false), ("text/event-stream; q=0.000, text/*", false),
            ("text/event-stream;q=0, */*", false), ("*/*, text/event-stream;q=0.9", false),
            ("text/event-stream;q=0.5, application/*;q=0.6", false),
            ("text/event-stream;q=2", false), ("text/event-stream;q=nan", false),
            (#"text/plain;x="\", text/event-stream""#, false),
        ])
    func `a stream is had by a client that prefers it to pages, or accepts both and names it`(
        _ accept: String, _ isStream: Bool
    ) {
        let request = Request(
            head: HTTPRequest(
                method: .get, scheme: nil, authority: nil, path: "/v1/events",
                headerFields: accept.isEmpty ? [:] : [.accept: accept]),
            body: RequestBody(buffer: ByteBuffer()))
        #expect(EventStream.isRequested(by: request) == isStream)
    }

    @Test(.verifies("OPS-21"))
    func `no piece of a reply keeps the whole reply in memory`() async throws {
        let bytes = (0..<1_000_000).map { UInt8(truncatingIfNeeded: $0) }
        let pieces = Pieces()
        try await Reply.large(
            bytes, holding: [], on: MultiThreadedEventLoopGroup.singleton.any(), check: {}
        ).body.write(pieces)
        let written = pieces.written.buffers.withLock { $0 }
        #expect(written.count > 10)
        #expect(written.allSatisfy { $0.storageCapacity <= 128 * 1_024 })
        #expect(written.flatMap { Array($0.readableBytesView) } == bytes)
    }

    /// A writer that passes each piece to the loop of a connection, as a connection's does, and does not wait for it.
    private struct LoopWriter: ResponseBodyWriter {
        let loop: any EventLoop
        let pending = Pending()

        final class Pending: Sendable {
            let pieces = Atomic(0)
            let piecesMax = Atomic(0)
        }

        mutating func write(_ buffer: ByteBuffer) async throws {
            let pieces = pending.pieces.add(1, ordering: .relaxed).newValue
            pending.piecesMax.max(pieces, ordering: .relaxed)
            loop.execute { [pending] in
                Thread.sleep(forTimeInterval: 0.001)
                pending.pieces.subtract(1, ordering: .relaxed)
            }
        }
        consuming func finish(_ trailingHeaders: HTTPFields?) async throws {}
    }

    @Test(.verifies("OPS-21"))
    func `a connection whose loop is slow has one piece of a reply, not the whole reply`()
        async throws
    {
        let loop = MultiThreadedEventLoopGroup.singleton.any()
        let writer = LoopWriter(loop: loop)
        try await Reply.large(
            [UInt8](repeating: 0, count: 1_000_000), holding: [], on: loop, check: {}
        ).body.write(writer)
        #expect(writer.pending.piecesMax.load(ordering: .relaxed) == 1)
    }
}

// A token that has ended is renewed before it is sent, once, whatever the clock says.
// Spec/protocol/replay.md, TOK-2.

import DaybookOffline
import DaybookTestKit
import EventSourcing
import Foundation
import LogStorage
import Replay
import Synchronization
import TestSupport
import Testing

/// Credentials whose tokens end a minute after they were made, by the issuer's clock.
private actor Issuer: Credentials {
    private let clock: VirtualClock
    private var current: AccessToken
    private(set) var renewals = 0
    /// False to refuse renewals.
    var isWilling = true

    init(_ clock: VirtualClock) {
        self.clock = clock
        current = AccessToken("t0", expiresAt: Timestamp(milliseconds: clock.milliseconds))
    }

    func refuse() { isWilling = false }
    func token() -> AccessToken? { current }
    func refresh(_ old: AccessToken?) -> AccessToken? {
        guard isWilling else { return nil }
        renewals += 1
        current = AccessToken(
            "t\(renewals)", expiresAt: Timestamp(milliseconds: clock.milliseconds + 60_000))
        return current
    }
}

/// Refuses tokens that have ended. Remembers all tokens, and names no date.
private final class TokenServer: Transport {
    let tokens = Mutex<[String?]>([])
    private let refused: Set<String>

    init(refusing refused: Set<String> = []) { self.refused = refused }

    func send(_ request: TransportRequest, token: String?) async throws -> TransportReply {
        tokens.withLock { $0.append(token) }
        if let token, refused.contains(token) { return TransportReply(status: 401) }
        return TransportReply(status: 200, body: Array("[]".utf8))
    }
}

@Suite struct EndedTokenTests {
    private static let year: Int64 = 365 * 86_400_000
    private let server = VirtualClock()

    /// Opens a store on a device whose clock is ahead, as every cold start does.
    private func open(ahead: Int64) async throws -> EventStore {
        let clock = server
        return try await EventStore.open(
            at: "/log", catalogue: OfflineModel.catalogue, views: [Outbox.self],
            environment: LogEnvironment(
                fileSystem: InMemoryFileSystem(), now: { clock.milliseconds + ahead }))
    }

    @Test(.verifies("TOK-2"))
    func `a token that has ended is renewed before it is sent`() async throws {
        let (issuer, transport) = (Issuer(server), TokenServer(refusing: ["t0"]))
        // By its own clock, an hour behind, the token has not ended; by the corrected clock it has.
        for ahead in [0, -3_600_000] as [Int64] {
            let store = try await open(ahead: ahead)
            await store.setClockOffset(-ahead)
            _ = try await Replayer(store, transport: transport, credentials: issuer).run()
            try await store.close()
            server.advance(by: .seconds(60))
        }
        #expect(transport.tokens.withLock { $0 } == ["t1", "t2"])
    }

    @Test(.verifies("TOK-2"))
    func `on a device a year ahead, a token is renewed once and not at every call`() async throws {
        let (issuer, transport) = (Issuer(server), TokenServer())
        let store = try await open(ahead: Self.year)
        for _ in 0..<5 {
            server.advance(by: .seconds(1))
            _ = try await Replayer(store, transport: transport, credentials: issuer).run()
        }
        #expect(await issuer.renewals == 1)
        #expect(transport.tokens.withLock { Set($0) } == ["t1"])
        try await store.close()
    }

    @Test(.verifies("TOK-2", "TOK-3"))
    func `a token that has ended by a wrong clock is sent if the issuer has no other`() async throws
    {
        let (issuer, transport) = (Issuer(server), TokenServer())
        await issuer.refuse()
        let store = try await open(ahead: Self.year)
        let report = try await Replayer(store, transport: transport, credentials: issuer).run()
        #expect(report.message == nil)
        #expect(transport.tokens.withLock { $0 } == ["t0"])
        try await store.close()
        // If the server refuses it as well, the run pauses.
        let again = try await open(ahead: Self.year)
        let refusing = TokenServer(refusing: ["t0"])
        let refused = try await Replayer(again, transport: refusing, credentials: issuer).run()
        #expect(refused.message != nil)
        #expect(refusing.tokens.withLock { $0 } == ["t0"])
        try await again.close()
    }
}

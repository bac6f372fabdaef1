// Devices that follow their account through a server's stream. Spec/protocol/following.md, FOL-10 to FOL-16.

import DaybookOffline
import DaybookTestKit
import Foundation
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(10))) struct FollowingTests {
    @Test(.verifies("FOL-10", "FOL-12"), arguments: StorageKind.all)
    func `what one device records appears on another without a request of it`(
        _ kind: StorageKind
    ) async throws {
        let fixture = try await kind.fixture()
        let server = try ServerProcess(database: fixture.location)
        let phone = try await Device(server.base)
        let tablet = try await Device(server.base)
        try await eventually { phone.updates == .pushed && tablet.updates == .pushed }
        for number in 0..<50 {
            let (writer, reader) = number % 2 == 0 ? (phone, tablet) : (tablet, phone)
            try await writer.store.cities.save("city-\(number)", by: "ana")
            try await eventually {
                reader.store.cities.saved(by: "ana").current.contains { $0 == "city-\(number)" }
            }
        }
        try await eventually { phone.service.report.pending + tablet.service.report.pending == 0 }
        #expect(phone.service.report.received == 25)
        #expect(tablet.service.report.received == 25)
        #expect(phone.service.report.duplicate + tablet.service.report.duplicate == 0)
        try await phone.close()
        try await tablet.close()
    }
}

/// A device that syncs all the time.
private final class Device: Sendable {
    let store: OfflineStore
    let service: SyncService
    private let run: Task<Void, any Error>

    var updates: SyncReport.Updates { service.report.updates }

    init(_ base: String) async throws {
        store = try await OfflineStore.inMemory()
        let endpoint = try #require(URL(string: base))
        service = SyncService(
            store, transport: HTTPTransport(endpoint: endpoint), reachability: AlwaysReachable())
        run = Task { [service] in try await service.run() }
    }

    func close() async throws {
        run.cancel()
        _ = await run.result
        try await store.close()
    }
}

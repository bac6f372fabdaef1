// Two devices of one account, for tests of an app's views after a sync. Built on InMemorySyncServer and
// VirtualClock.

import Daybook
import EventSourcing
import Foundation

/// Two devices of one account with a sync server and a clock, all in memory.
///
/// ```swift
/// let devices = try await DevicePair(rules: rules, views: [Trips.self])
/// try await devices.phone.append(TripPlanned(trip: "spring", stop: "lake"))
/// devices.clock.advance(by: .seconds(60))
/// try await devices.tablet.append(TripPlanned(trip: "spring", stop: "forest"))
/// try await devices.sync()
/// #expect(devices.phone.view(Trips.self) == devices.tablet.view(Trips.self))
/// try await devices.close()
/// ```
///
/// Ids and sources are the same in each run. Timers never fire: see `VirtualClock.environment`.
public struct DevicePair: Sendable {
    /// The device that syncs first.
    public let phone: EventStore
    /// The other device.
    public let tablet: EventStore
    /// The server that both sync with.
    public let server: InMemorySyncServer
    /// The clock of both devices.
    public let clock: VirtualClock

    /// Opens two new stores in memory.
    ///
    /// - Parameters:
    ///   - rules: the rules of the app's event types. Only types with an action are exchanged.
    ///   - upcasters: the conversions of older event types to their successors.
    ///   - views: the views to keep.
    ///   - catalogue: the event types of a library, to which those of the app are added.
    ///   - server: the server that both sync with.
    ///   - clock: the clock of both devices.
    /// - Throws: as `EventStore.open`.
    public init(
        rules: [EventRule] = [], upcasters: [Upcaster] = [], views: [any Projection.Type] = [],
        extending catalogue: EventCatalogue = .ownTypes,
        server: InMemorySyncServer = InMemorySyncServer(), clock: VirtualClock = VirtualClock()
    ) async throws {
        func device(seed: UInt64) async throws -> EventStore {
            try await EventStore.open(
                at: URL(filePath: "/log"), rules: rules, upcasters: upcasters, views: views,
                extending: catalogue,
                environment: clock.environment(fileSystem: InMemoryFileSystem(), seed: seed))
        }
        phone = try await device(seed: 1)
        tablet = try await device(seed: 2)
        self.server = server
        self.clock = clock
    }

    /// Syncs the phone, the tablet and the phone again. Then each has the other's events, unless the server
    /// refused them.
    ///
    /// - Parameter resolver: decides conflicts; nil leaves them to the app.
    /// - Throws: as `EventStore.sync(over:)`.
    public func sync(resolver: (any ConflictResolver)? = nil) async throws {
        for store in [phone, tablet, phone] {
            try await store.sync(over: server, resolver: resolver)
        }
    }

    /// Closes both stores.
    ///
    /// - Throws: as `EventStore.close()`.
    public func close() async throws {
        try await phone.close()
        try await tablet.close()
    }
}

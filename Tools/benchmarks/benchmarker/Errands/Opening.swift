// The cost of opening a store whose views have Codable states with many entries: from a checkpoint, and by
// folding all events. Runs in a process of its own.

import Daybook
import Foundation
import LogStorage

/// An app's own event.
private struct StopPlanned: EventPayload, Codable {
    static let type = "com.example.stop.planned"
    var stop: String
    var name: String
    var nights: Int
    var arrival: Date
    var subject: String? { stop }
}

private protocol ViewNumber: Sendable {
    static var number: Int { get }
}

/// A Codable state with an entry for each event.
private struct Stops<Number: ViewNumber>: Projection, Codable {
    struct Stop: Codable, Sendable {
        var name: String
        var nights: Int
        var arrival: Date
    }

    static var name: String { "stops-\(Number.number)" }
    static var version: Int { 1 }
    static var eventTypes: Set<String>? { [StopPlanned.type] }
    private(set) var stops: StateDictionary<String, Stop> = [:]

    mutating func fold(_ event: Event) {
        guard let planned = try? event.payload(as: StopPlanned.self) else { return }
        stops[planned.stop] = Stop(
            name: planned.name, nights: planned.nights, arrival: planned.arrival)
    }
}

/// Opens such a store three times in each way.
struct Opening: Errand {
    /// The medians of elapsed and processor time.
    struct Figures: Codable {
        var foldedAnew = Seconds()
        var fromCheckpoint = Seconds()
    }

    struct Seconds: Codable {
        var elapsed = 0.0
        var processor = 0.0
    }

    var log: String
    var entries: Int
    /// The number of views, 1 to 10.
    var views: Int

    func perform() async throws -> Figures {
        let store = try await open()
        for start in stride(from: 0, to: entries, by: 1_000) {
            try await store.append(
                contentsOf: (start..<min(start + 1_000, entries)).map { number in
                    try EventDraft(
                        StopPlanned(
                            stop: "stop-\(number * 7_919)", name: "North pier, quay \(number % 40)",
                            nights: number % 9,
                            arrival: Date(timeIntervalSince1970: Double(number) * 60)))
                })
        }
        try await store.close()
        return Figures(
            foldedAnew: try await median { try removeCheckpoints() },
            fromCheckpoint: try await median {})
    }

    private func median(_ prepare: () throws -> Void) async throws -> Seconds {
        var all: [Seconds] = []
        for _ in 0..<3 {
            try prepare()
            let (start, processor) = (ContinuousClock.now, SystemCounters.processorSeconds())
            let store = try await open()
            all.append(
                Seconds(
                    elapsed: (ContinuousClock.now - start) / .seconds(1),
                    processor: SystemCounters.processorSeconds() - processor))
            precondition(store.view(Stops<One>.self).stops.count == entries)
            try await store.close()
        }
        return all.sorted { $0.elapsed < $1.elapsed }[1]
    }

    private func removeCheckpoints() throws {
        let folder = "\(log)/\(LogDirectory.checkpoints)"
        for name in try FileManager.default.contentsOfDirectory(atPath: folder) {
            try FileManager.default.removeItem(atPath: "\(folder)/\(name)")
        }
    }

    private func open() async throws -> EventStore {
        try await EventStore.open(
            at: URL(filePath: log), rules: [.of(StopPlanned.self)],
            views: Array(Self.allViews.prefix(views)))
    }

    private static let allViews: [any Projection.Type] = [
        Stops<One>.self, Stops<Two>.self, Stops<Three>.self, Stops<Four>.self, Stops<Five>.self,
        Stops<Six>.self, Stops<Seven>.self, Stops<Eight>.self, Stops<Nine>.self, Stops<Ten>.self,
    ]
}

private enum One: ViewNumber { static let number = 1 }
private enum Two: ViewNumber { static let number = 2 }
private enum Three: ViewNumber { static let number = 3 }
private enum Four: ViewNumber { static let number = 4 }
private enum Five: ViewNumber { static let number = 5 }
private enum Six: ViewNumber { static let number = 6 }
private enum Seven: ViewNumber { static let number = 7 }
private enum Eight: ViewNumber { static let number = 8 }
private enum Nine: ViewNumber { static let number = 9 }
private enum Ten: ViewNumber { static let number = 10 }

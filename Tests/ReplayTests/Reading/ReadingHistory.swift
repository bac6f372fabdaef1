// Histories of two devices that read and change the places of one API, which others change as well. Requests and answers
// are lost, lists come late, the apps are killed, clocks are apart. At the end both show the API's state, and no change of
// a user is lost without a decision.

import DaybookTestKit
import EventSourcing
import Foundation
import LogStorage
import Replay
import Synchronization
import Testing

enum ReadingHistory {
    /// The number of histories; DAYBOOK_READING_HISTORIES for a longer search.
    static let runs =
        ProcessInfo.processInfo.environment["DAYBOOK_READING_HISTORIES"].flatMap { Int($0) } ?? 150

    /// What the network does, and the state of the disk when the app was killed.
    private struct Network {
        var choices: Choices
        var isReliable = false
        var isDead = false
        var files: InMemoryFileSystem?
        var snapshot: InMemoryFileSystem?
        var others = 0
    }

    static func check(_ choices: inout Choices) async throws {
        let form = PlacesAPI.Form.allCases[choices.int(in: 0...2)]
        let hasTags = form == .since ? false : choices.bool()
        // READ-5: by absence only what the log has read or was taught is deleted.
        let (matches, teaches) = (choices.bool(), choices.bool() || form == .everything)
        let limit = choices.bool() ? 2 : 100
        choices.count("\(form)")
        let network = Mutex(Network(choices: choices))
        defer { choices = network.withLock { $0.choices } }
        func draw<Value>(_ body: (inout Choices) -> Value) -> Value {
            network.withLock { body(&$0.choices) }
        }
        let changed = Mutex<PlacesAPI?>(nil)
        let api = PlacesAPI(form, hasTags: hasTags, limit: limit) { request in
            network.withLock { network in
                guard !network.isDead else { return .lostRequest }
                guard !network.isReliable else { return .answered }
                // A place is changed elsewhere before the request arrives.
                if network.choices.bool(oneIn: 4), let api = changed.withLock({ $0 }) {
                    Self.changeElsewhere(api, &network.choices, &network.others)
                }
                let fate = Self.fate(&network.choices, isRead: request.method == .get)
                if case .killed = fate {
                    network.isDead = true
                    network.snapshot = network.files?.snapshot()
                }
                return fate
            }
        }
        changed.withLock { $0 = api }
        defer { changed.withLock { $0 = nil } }
        let resolver = ChosenResolver {
            network.withLock { $0.isReliable ? 1 : $0.choices.int(in: 0...2) }
        }
        var devices = [
            try await PlacesDevice(api, matches: matches, teaches: teaches, seed: 1),
            try await PlacesDevice(
                api, matches: matches, teaches: teaches, seed: 2,
                clock: VirtualClock(milliseconds: 1_772_000_000_000 + 7_200_000)),
        ]
        var titles: Set<String> = []
        for step in 0..<draw({ $0.int(in: 1...10) }) {
            let index = draw { $0.int(in: 0...1) }
            for number in 0..<draw({ $0.int(in: 0...2) }) {
                let place = "p\(draw { $0.int(in: 0...3) })"
                // Two devices may give a place the same title, and an earlier one may come back.
                let title = "d\(index)-\(step)-\(number)"
                try await devices[index].title(place, title)
                titles.insert(title)
            }
            network.withLock { $0.files = devices[index].files }
            let ships = draw { !$0.bool(oneIn: 5) }
            let decides = draw { !$0.bool(oneIn: 3) }
            try await devices[index].run(deciding: decides ? resolver : nil, ships: ships)
            let (isDead, snapshot) = network.withLock { network in
                defer { (network.isDead, network.snapshot) = (false, nil) }
                return (network.isDead, network.snapshot)
            }
            if isDead || draw({ $0.bool(oneIn: 5) }) { try await devices[index].reopen(snapshot) }
            if draw({ $0.bool(oneIn: 5) }) { try await devices[index].store.compact() }
            try requireShown(devices[index])
            let jump = draw { $0.int(in: -3_600...5_000) }
            devices[index].clock.advance(by: .seconds(jump))
        }
        network.withLock { $0.isReliable = true }
        for _ in 0..<8 {
            for device in devices {
                device.clock.advance(by: .seconds(3_700))
                try await device.run(deciding: resolver)
            }
        }
        let lost = resolver.lost.withLock { $0 }
        for device in devices {
            try #require(device.outbox.count == 0, "\(Array(device.outbox.entries))")
            try #require(device.titles == api.titles)
            try #require(device.store.view(NewestPlaces.self).titles == api.titles)
            let length = try device.log().count
            try await device.run(deciding: resolver)
            try #require(try device.log().count == length)
        }
        let applied = api.state.withLock { $0.applied }
        let missing = titles.subtracting(applied.keys).subtracting(lost)
        try #require(missing.isEmpty, "lost: \(missing)")
        let doubled = applied.filter { $0.value > 1 }
        try #require(doubled.isEmpty)
        let others = network.withLock { $0.others }
        draw { choices in
            choices.count("conflicts", by: resolver.asked.withLock { $0 })
            choices.count("lost by decision", by: lost.count)
            choices.count("changes", by: titles.count)
            choices.count("changes elsewhere", by: others)
        }
    }

    /// A change that is not sent is shown, unless it is in conflict.
    private static func requireShown(_ device: PlacesDevice) throws {
        var lanes: [String: [OutboxEntry]] = [:]
        for entry in device.outbox.entries { lanes[entry.lane, default: []].append(entry) }
        let events = try device.log()
        for (lane, entries) in lanes where !entries.contains(where: { $0.status == .conflict }) {
            let last = entries.last.flatMap { entry in events.first { $0.id == entry.id } }
            let title = try last?.payload(as: PlaceTitled.self).title
            try #require(device.titles[lane] == title)
        }
    }

    private static func changeElsewhere(
        _ api: PlacesAPI, _ choices: inout Choices, _ count: inout Int
    ) {
        let place = "p\(choices.int(in: 0...4))"
        count += 1
        if choices.bool(oneIn: 3) {
            api.delete(place)
        } else {
            // A title that was there before may come back.
            api.set(place, "elsewhere \(choices.int(in: 0...2))")
        }
    }

    private static func fate(_ choices: inout Choices, isRead: Bool) -> PlacesAPI.Fate {
        func counted(_ fate: PlacesAPI.Fate, _ label: String) -> PlacesAPI.Fate {
            choices.count(label)
            return fate
        }
        switch choices.int(in: 0...13) {
        case 7: return counted(.lostRequest, "lost requests")
        case 8: return counted(.lostAnswer, "lost answers")
        case 9: return counted(.killed, "kills")
        case 10: return .instead(choices.bool() ? .page(200) : .json(429, "{}"))
        case 11: return .instead(.json([500, 503][choices.int(in: 0...1)], "{}"))
        case 12 where isRead: return counted(.late(choices.int(in: 1...3)), "late lists")
        case 13 where isRead:
            return .instead(.json(200, [#"{"error":"busy"}"#, "[]", ""][choices.int(in: 0...2)]))
        default: return .answered
        }
    }
}

// What must hold in a history of devices that read: after each run, after a read without faults, and at the end.

import Daybook
import DaybookTestKit
import EventSourcing
import Foundation
import LogFormat
import Replay

extension ReadingHistory {
    // MARK: After each run

    /// Notes what a device and its API are like before a run.
    mutating func note(_ index: Int) throws {
        let device = devices[index].device
        devices[index].moment = device.api.state.withLock { $0.history.count }
        devices[index].unsent = Set(device.outbox.entries.map(\.id))
        devices[index].through = try device.log().last?.position ?? .zero
    }

    /// Checks what a run has left.
    mutating func check(_ index: Int) throws {
        let events = try devices[index].device.log()
        for event in events where event.position > devices[index].through {
            try checkIsReal(event, index)
        }
        for event in events { noteShown(event, index) }
        try checkUnsent(index, events)
        try checkOverwritten(index, events)
        try checkShown(index, events)
    }

    /// A state that was recorded was one of the API while the run lasted, or as much earlier as lists are late; a taught
    /// one at any time.
    private func checkIsReal(_ event: Event, _ index: Int) throws {
        guard [PlaceState.type, ShopState.type].contains(event.type),
            let titled = TitledPlace(event), let text = event.content.string("apistate")
        else { return }
        let device = devices[index].device
        let id = id(of: titled.place, device)
        let isTaught = text.split(separator: " ").dropFirst(2).first?.contains("a") ?? false
        // A list of all changes has old ones.
        let isFeed =
            manners.ordersChanges
            && (event.type == ShopState.type ? manners.shops : manners.places) == .cursor
        let begin =
            isTaught || isFeed ? 0 : max(0, devices[index].moment - SimulatedConnection.lateMax)
        let isReal = device.api.state.withLock { state in
            let row = state.rows(after: begin)[id]
            let titles =
                [row.flatMap { $0.deleted ? nil : $0.title }]
                + state.history.dropFirst(begin).filter { $0.row.id == id }.map {
                    $0.row.deleted ? nil : $0.row.title
                }
            return titles.contains(titled.title)
        }
        guard isReal else {
            throw RequestFailure(
                description:
                    "\(titled.place) was recorded as \(titled.title ?? "deleted"), which the API never had"
            )
        }
    }

    /// What has left the outbox was applied, or decided.
    private func checkUnsent(_ index: Int, _ events: [Event]) throws {
        let device = devices[index].device
        let left = Set(device.outbox.entries.map(\.id))
        let applied = device.api.state.withLock { $0.applied }
        for id in devices[index].unsent where !left.contains(id) {
            guard applied[id.uuidString.lowercased()] != nil || decided.contains(id) else {
                throw RequestFailure(description: "the change \(id) is lost without a decision")
            }
        }
    }

    /// What a change has overwritten was shown before the change was made.
    private func checkOverwritten(_ index: Int, _ events: [Event]) throws {
        guard matches else { return }
        let device = devices[index].device
        let own = Dictionary(
            events.map { ($0.id.uuidString.lowercased(), $0) }, uniquingKeysWith: { $1 })
        for application in device.api.state.withLock({ $0.applications }) {
            guard let overwritten = application.overwritten, let event = own[application.key]
            else { continue }
            let earlier = (devices[index].shown[event.lane] ?? [:]).filter {
                $0.key < event.position.rawValue
            }
            guard earlier.values.contains(overwritten.row.title) else {
                throw RequestFailure(
                    description:
                        "\(event.lane): \(overwritten.row.title) was overwritten, and the user had not seen it"
                )
            }
        }
    }

    /// A change that is not settled is shown, unless a state came after it, which then is in conflict with it.
    private func checkShown(_ index: Int, _ events: [Event]) throws {
        let device = devices[index].device
        for (lane, entries) in lanes(of: device)
        where !entries.contains(where: { $0.status == .conflict }) {
            let last = entries.last.flatMap { entry in events.first { $0.id == entry.id } }
            let title = last.flatMap { TitledPlace($0) }?.title
            let newest = device.store.view(NewestPlaces.self).titles[lane]
            guard device.titles[lane] == title, newest == title else {
                throw RequestFailure(
                    description:
                        "\(lane) is shown as \(device.titles[lane] ?? "deleted") and \(newest ?? "deleted"), and was changed to \(title ?? "deleted")"
                )
            }
        }
    }

    private mutating func noteShown(_ event: Event, _ index: Int) {
        guard let titled = TitledPlace(event) else { return }
        devices[index].shown[event.lane, default: [:]][event.position.rawValue] = .some(
            titled.title)
    }

    /// Forgets what events have shown that the log has no more, after a power cut or a restore.
    mutating func forgetLostEvents(_ index: Int) throws {
        let last = try devices[index].device.log().last?.position.rawValue ?? 0
        devices[index].shown = devices[index].shown.mapValues { $0.filter { $0.key <= last } }
    }

    // MARK: After a read without faults

    /// Reads twice without faults: the views are the API's state with the changes that are not sent, and the second time
    /// nothing is recorded. After a conflict the list is read once more, for its tag.
    mutating func readTwice(_ index: Int) async throws {
        let device = devices[index].device
        connection.isReliable = true
        device.api.deliverLateRequests()
        connection.restart(on: device.files)
        try note(index)
        let report = try await device.run(ships: false)
        try check(index)
        try checkEqual(index, report)
        if try device.log().contains(where: {
            $0.position > devices[index].through && $0.type == SyncSettled.type
        }) {
            try await device.run(ships: false)
        }
        let last = try device.log().last?.position ?? .zero
        try await device.run(ships: false)
        if let event = try device.log().first(where: { $0.position > last }) {
            throw RequestFailure(
                description: "the same was read twice, and recorded again: \(event)")
        }
    }

    /// The views are the API's state with the changes that are not sent.
    ///
    /// - Parameter report: of the run that has read it.
    func checkEqual(_ index: Int, _ report: SyncReport) throws {
        // A page of which elements are not ready may show no greater number.
        guard report.message?.contains("cannot be continued") != true else { return }
        // READ-5: nothing is deleted by absence from a list of which an element is not ready.
        let mayLackDeletions = adds && report.waiting > 0
        let device = devices[index].device
        let titles = device.api.titles
        var ids: Set<String> = []
        let entries = lanes(of: device)
        for view in [device.titles, device.store.view(NewestPlaces.self).titles] {
            ids = []
            for place in Set(view.keys).union(entries.keys) {
                let id = id(of: place, device)
                guard ids.insert(id).inserted else {
                    throw RequestFailure(description: "\(place) is shown twice")
                }
                let pending = entries[place] ?? []
                guard pending.isEmpty || pending.contains(where: { $0.status == .conflict }) else {
                    continue
                }
                let isOwn = !pending.isEmpty && view[place] == lastTitle(of: pending, device)
                guard
                    view[place] == titles[id] || isOwn || mayLackDeletions && titles[id] == nil
                else {
                    throw RequestFailure(
                        description:
                            "\(place) is shown as \(view[place] ?? "deleted"), and is \(titles[id] ?? "deleted") at the API"
                    )
                }
            }
        }
        let missing = titles.keys.filter {
            !ids.contains($0) && ($0.hasPrefix("s") ? manners.shops != nil : true)
        }
        // One that this device may have added waits for the answer.
        for id in missing where id.first?.isNumber != true || entries.isEmpty {
            throw RequestFailure(description: "\(id) is not shown")
        }
    }

    private func lastTitle(of entries: [OutboxEntry], _ device: PlacesDevice) -> String? {
        guard let last = entries.last,
            let event = try? device.log().first(where: { $0.id == last.id })
        else { return nil }
        return TitledPlace(event)?.title
    }

    private func lanes(of device: PlacesDevice) -> [String: [OutboxEntry]] {
        Dictionary(grouping: device.outbox.entries, by: \.lane)
    }

    /// The API's id of a place.
    private func id(of place: String, _ device: PlacesDevice) -> String {
        device.store.view(PlaceNumbers.self).numbers[place].map { "\($0)" } ?? place
    }

    // MARK: At the end

    /// Each change took effect at most once.
    func checkAppliedOnce(_ api: PlacesAPI) throws {
        for (key, count) in api.state.withLock({ $0.applied }) where count > 1 {
            throw RequestFailure(description: "the change \(key) took effect \(count) times")
        }
    }
}

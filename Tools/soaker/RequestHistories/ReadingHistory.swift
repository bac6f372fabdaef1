// One history of two devices that read and change the places of an API, which others change as well. Requests and
// answers are lost, lists come late, apps are killed, the power is cut, clocks are wrong, logs are restored and erased.
// `Tools/soak reading` runs many. ReadingHistory+Checks has what must hold. Spec/testing/testing.md.

import Daybook
import DaybookTestKit
import EventSourcing
import Foundation
import LogStorage
import Replay
import Synchronization

/// A history of two devices and the APIs of two accounts.
public struct ReadingHistory {
    /// The labels that a few hundred histories must have counted.
    public static let labels = [
        "304", "accounts changed", "changes while a list is read", "conflicts", "erased changes",
        "events compacted", "kills", "late lists", "lists since", "lists by cursor",
        "lists of everything", "lost answers", "lost by decision", "412 after a lost answer",
        "not ready", "outdated decisions", "power cuts", "refused", "restored from backups",
        "several requests", "two sources",
    ]

    /// A device, and what the history knows of it.
    struct Device {
        var device: PlacesDevice
        var backup: PlacesDevice.Backup?
        /// The number of changes that the API had when the run began.
        var moment = 0
        /// The events of the outbox when the run began.
        var unsent: Set<UUID> = []
        /// The last position before the run.
        var through = Position.zero
        /// A conflict that the user looks at.
        var conflict: Conflict?
        /// What the lanes showed, by position: nil for nothing.
        var shown: [String: [UInt64: String?]] = [:]
    }

    let connection: SimulatedConnection
    let matches: Bool
    let manners: PlacesAPI.Manners
    /// The conflicts that a resolver or the user has decided.
    let decided: Decisions
    var devices: [Device] = []
    private let apis: [String: PlacesAPI]
    private let teaches: Bool
    let adds: Bool
    private let requestsMax: Int
    private var backups = 0
    private var names = 0

    /// Runs a history.
    ///
    /// - Parameter choices: decide all of it; with several requests at a time, their order depends on the machine, too.
    /// - Throws: `RequestFailure` if a promise is not kept.
    public static func run(_ choices: inout Choices) async throws {
        var history = try await ReadingHistory(&choices)
        defer { choices = history.connection.choices }
        do { try await history.run() } catch {
            try history.noteLogs()
            throw error
        }
    }

    private init(_ choices: inout Choices) async throws {
        var manners = PlacesAPI.Manners()
        manners.places = choices.element(of: PlacesAPI.Form.allCases)
        manners.shops = choices.bool() ? choices.element(of: PlacesAPI.Form.allCases) : nil
        let forms = [manners.places, manners.shops]
        if forms.contains(.since) {
            choices.count("lists since")
        } else {
            manners.hasTags = choices.bool()
        }
        if forms.contains(.cursor) { choices.count("lists by cursor") }
        if forms.contains(.everything) { choices.count("lists of everything") }
        if manners.shops != nil { choices.count("two sources") }
        manners.limit = choices.element(of: [100, 3, 2])
        manners.hasOffsets = false
        let matches = choices.bool()
        // An API that compares numbers has no two states with one number; a page has more rows than have one number.
        manners.hasTies =
            !matches && !manners.hasTags && manners.limit > 2 && choices.bool(oneIn: 4)
        manners.comparesFirst = matches && choices.bool(oneIn: 4)
        self.matches = matches
        self.manners = manners
        // READ-5: by absence only what the log has read or was taught is deleted.
        teaches = choices.bool() || forms.contains(.everything)
        adds = choices.bool()
        requestsMax = choices.element(of: [1, 1, 1, 2, 4])
        if requestsMax > 1 { choices.count("several requests") }
        let connection = SimulatedConnection(choices, SimulatedFileSystem(), mayBeLate: true)
        self.connection = connection
        decided = Decisions(connection)
        apis = Dictionary(
            uniqueKeysWithValues: ["ann", "bob"].map { account in
                let weak = WeakAPI()
                let api = PlacesAPI(manners) { request in
                    weak.api?.changeElsewhere(connection)
                    return connection.nextFate(isRead: request.isRead)
                }
                weak.api = api
                return (account, api)
            })
        for seed in 1...2 as ClosedRange<UInt64> {
            devices.append(Device(device: try await makeDevice(seed)))
        }
    }

    /// Notes the logs, and what the API has, for the report of a failure.
    private func noteLogs() throws {
        for device in devices.map(\.device) {
            let lines = try device.log().map { "\($0) \($0.content.string("apistate") ?? "")" }
            let api = "\(device.account): \(device.api.titles.sorted { $0.key < $1.key })"
            connection.draw { $0.note(([api] + lines).joined(separator: "\n    ")) }
        }
    }

    private func makeDevice(_ seed: UInt64) async throws -> PlacesDevice {
        let question = Confirmation { context in
            APIRequest(.get, "changes", context.event.id.uuidString.lowercased())
        }
        return try await PlacesDevice(
            try api(of: "ann"), matches: matches, teaches: teaches, seed: seed,
            clock: VirtualClock(milliseconds: 1_772_000_000_000 + Int64(seed - 1) * 7_200_000),
            promise: .once(keysKeptFor: nil, confirm: manners.comparesFirst ? question : nil))
    }

    private func api(of account: String) throws -> PlacesAPI {
        guard let api = apis[account] else {
            throw RequestFailure(description: "there is no account \(account)")
        }
        return api
    }

    func draw<Value: Sendable>(_ body: (inout Choices) -> Value) -> Value { connection.draw(body) }

    // MARK: The steps

    private mutating func run() async throws {
        for _ in 0..<draw({ $0.int(in: 1...8) }) {
            let index = draw { $0.int(in: 0...1) }
            for _ in 0..<draw({ $0.int(in: 0...2) }) { try await change(devices[index].device) }
            try await decide(index)
            // A third of the runs have no faults: what they leave is compared with the API at once.
            let isCalm = draw { $0.bool(oneIn: 3) }
            connection.isReliable = isCalm
            if isCalm { devices[index].device.api.deliverLateRequests() }
            let report = try await sync(index)
            if isCalm { try checkEqual(index, report) }
            if draw({ $0.bool(oneIn: 3) }) { try await readTwice(index) }
            try await live(index)
        }
        try await end()
    }

    /// The user adds, renames or removes a place or a shop.
    private mutating func change(_ device: PlacesDevice) async throws {
        names += 1
        let (choice, place) = draw { choices in
            (
                choices.int(in: 0...9),
                choices.bool(oneIn: 3) && manners.shops != nil
                    ? "s\(choices.int(in: 0...1))" : "p\(choices.int(in: 0...2))"
            )
        }
        let name = "mine \(names)"
        let mine = device.store.view(PlaceNumbers.self).numbers.keys.sorted()
        switch choice {
        case 8 where adds:
            try await device.store.append(PlaceAdded(place: "new \(names)", name: name))
        case 7 where !mine.isEmpty: try await device.title(mine[0], name)
        case 6: try await device.store.append(PlaceRemoved(place: place))
        case 5:
            connection.count("refused")
            try await device.title(place, "refused \(names)")
        default: try await device.title(place, name)
        }
    }

    /// The user looks at a conflict, or decides about the one that was looked at before, and discards what the API has
    /// refused.
    private mutating func decide(_ index: Int) async throws {
        let store = devices[index].device.store
        for entry in Array(store.outbox.entries) where entry.code == "http_422" {
            guard draw({ $0.bool() }), store.outbox.entries.contains(where: { $0.id == entry.id })
            else { continue }
            decided.insert(try await store.outbox.discard(entry.id, withDependents: true))
        }
        if let conflict = devices[index].conflict {
            devices[index].conflict = nil
            try await decide(conflict, store)
        } else if let entry = store.outbox.entries.first(where: { $0.status == .conflict }) {
            devices[index].conflict = try await store.outbox.conflict(entry.id)
        }
    }

    private func decide(_ conflict: Conflict, _ store: EventStore) async throws {
        guard let first = conflict.pending.first else { return }
        let now = try await store.outbox.conflict(first.id)
        let isSame =
            now?.pending.map(\.id) == conflict.pending.map(\.id)
            && now?.current?.id == conflict.current?.id
        do {
            try await store.outbox.resolve(
                conflict, draw { $0.bool() } ? .keepMine : .keepTheirs)
            decided.insert(conflict.pending.map(\.id))
            guard isSame else {
                throw RequestFailure(description: "a decision on an older state was recorded")
            }
        } catch is DecisionError {
            connection.count("outdated decisions")
            guard !isSame else {
                throw RequestFailure(description: "a decision on the present state was refused")
            }
        }
    }

    /// - Parameter isLast: true to send and to decide what there is.
    @discardableResult
    private mutating func sync(_ index: Int, isLast: Bool = false) async throws -> SyncReport {
        let device = devices[index].device
        connection.restart(on: device.files)
        try note(index)
        let decides = isLast || draw { !$0.bool(oneIn: 3) }
        let report = try await device.run(
            deciding: decides ? decided : nil, ships: isLast || draw { !$0.bool(oneIn: 5) },
            requests: requestsMax, over: isLast ? nil : client(of: device))
        if report.waiting > 0 { connection.count("not ready") }
        if let killed = connection.killed { try await devices[index].device.reopen(killed) }
        try check(index)
        return report
    }

    /// What may happen to a device between two runs.
    private mutating func live(_ index: Int) async throws {
        switch draw({ $0.int(in: 0...11) }) {
        case 4: try await devices[index].device.reopen()
        case 5:
            connection.count("power cuts")
            let files = devices[index].device.files
            try await devices[index].device.reopen(draw { files.afterPowerCut(&$0) })
        case 6, 7:
            connection.count("events compacted", by: try await devices[index].device.compact())
        case 8: devices[index].backup = devices[index].device.backup()
        case 9:
            guard let backup = devices[index].backup else { break }
            connection.count("restored from backups")
            try await devices[index].device.restore(backup)
            devices[index].conflict = nil
        case 10: try await changeAccount(index)
        default: break
        }
        try forgetLostEvents(index)
        let jump = draw { choices in
            choices.bool(oneIn: 8)
                ? choices.element(of: [86_400, -86_400]) : choices.int(in: -3_600...5_000)
        }
        devices[index].device.clock.advance(by: .seconds(jump))
    }

    /// The user signs out, which erases the log, and another one signs in.
    private mutating func changeAccount(_ index: Int) async throws {
        connection.count("accounts changed")
        let device = devices[index].device
        connection.count("erased changes", by: device.outbox.count)
        let account = device.account == "ann" ? "bob" : "ann"
        let api = try api(of: account)
        try await devices[index].device.erase(
            for: account, api, api.rules(matches: matches, teaches: teaches))
        (devices[index].backup, devices[index].conflict) = (nil, nil)
        devices[index].shown = [:]
    }

    private func client(of device: PlacesDevice) -> any APIClient {
        ReadingClient(api: device.api, connection: connection) { [connection, names] in
            connection.count("changes while a list is read")
            let (place, number) = connection.draw { ($0.int(in: 0...2), $0.int(in: 0...99)) }
            try await device.title("p\(place)", "meanwhile \(names) \(number)")
        }
    }

    /// Ends the faults, syncs all devices and compares them with the API.
    private mutating func end() async throws {
        connection.isReliable = true
        decided.keepTheirs()
        for _ in 0..<4 {
            for index in devices.indices {
                devices[index].device.clock.advance(by: .seconds(3_700))
                devices[index].device.api.deliverLateRequests()
                devices[index].conflict = nil
                try await sync(index, isLast: true)
                let store = devices[index].device.store
                for entry in Array(store.outbox.entries) where entry.code == "http_422" {
                    decided.insert(try await store.outbox.discard(entry.id, withDependents: true))
                }
            }
        }
        for index in devices.indices {
            try await readTwice(index)
            if let entry = devices[index].device.outbox.entries.first {
                throw RequestFailure(description: "it is not settled: \(entry)")
            }
        }
        connection.count("lost by decision", by: decided.lost)
        connection.count("conflicts", by: decided.asked)
        for api in apis.values { try checkAppliedOnce(api) }
    }
}

/// Holds the API of its own function.
private final class WeakAPI: Sendable {
    private struct Weak { weak var api: PlacesAPI? }
    private let state = Mutex(Weak())
    var api: PlacesAPI? {
        get { state.withLock { $0.api } }
        set { state.withLock { $0.api = newValue } }
    }
}

extension PlacesAPI {
    /// Changes a place before a request arrives, while there are faults.
    fileprivate func changeElsewhere(_ connection: SimulatedConnection) {
        guard !connection.isReliable, connection.draw({ $0.bool(oneIn: 4) }) else { return }
        let (place, title, isDeletion) = connection.draw { choices in
            let place =
                choices.bool(oneIn: 3) ? "s\(choices.int(in: 0...1))" : "p\(choices.int(in: 0...3))"
            // A title that was there before may come back.
            return (place, "elsewhere \(choices.int(in: 0...2))", choices.bool(oneIn: 3))
        }
        connection.count("changes elsewhere")
        if isDeletion { delete(place) } else { set(place, title) }
    }
}

/// The client of a device, whose user may change something while a list is read.
private struct ReadingClient: APIClient {
    let api: PlacesAPI
    let connection: SimulatedConnection
    let change: @Sendable () async throws -> Void

    func answer(to request: BoundedHTTPRequest, token: String?) async throws -> APIAnswer {
        let answer = try api.respond(to: request)
        if answer.status == 304 { connection.count("304") }
        if answer.status == 412, let key = request.key,
            api.state.withLock({ $0.applied[key] != nil })
        {
            connection.count("412 after a lost answer")
        }
        if request.isRead, connection.draw({ $0.bool(oneIn: 8) }) { try await change() }
        return answer
    }
}

/// Decides conflicts, and knows the events that a decision has ended.
final class Decisions: ConflictResolver {
    private struct State {
        var ids: Set<UUID> = []
        var asked = 0
        var lost = 0
        var merged = 0
        var keepsTheirs = false
    }

    private let state = Mutex(State())
    private let connection: SimulatedConnection

    init(_ connection: SimulatedConnection) { self.connection = connection }

    var asked: Int { state.withLock { $0.asked } }
    /// The number of conflicts in which the API's state was kept.
    var lost: Int { state.withLock { $0.lost } }
    func contains(_ id: UUID) -> Bool { state.withLock { $0.ids.contains(id) } }
    func insert(_ ids: [UUID]) { state.withLock { $0.ids.formUnion(ids) } }
    func keepTheirs() { state.withLock { $0.keepsTheirs = true } }

    func resolve(_ conflict: Conflict) throws -> Resolution {
        let choice = state.withLock { $0.keepsTheirs } ? 1 : connection.draw { $0.int(in: 0...3) }
        guard choice > 0 else { return .undecided }
        return try state.withLock { state in
            state.asked += 1
            state.ids.formUnion(conflict.pending.map(\.id))
            switch choice {
            case 1:
                state.lost += 1
                return .keepTheirs
            case 2: return .keepMine
            default:
                state.merged += 1
                return .replace([
                    try EventDraft(
                        PlaceRenamed(place: conflict.lane, name: "merged \(state.merged)"))
                ])
            }
        }
    }
}

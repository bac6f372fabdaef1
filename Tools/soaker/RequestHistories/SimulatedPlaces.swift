// The API of the places, in memory, behind a network that fails as the choices say. It counts how often each change
// was applied, and which numbers the device has been told.

import Daybook
import DaybookTestKit
import Foundation
import Replay
import Synchronization

/// The API.
final class SimulatedPlaces: APIClient {
    /// What happens to a request.
    enum Fate {
        case answered
        /// Nothing reaches the API.
        case lostRequest
        /// The API applies it, and no answer arrives.
        case lostAnswer
        /// No answer arrives, and the API gets the request after later ones.
        case late
        /// The API applies it, and the app is killed before the answer arrives.
        case killed
        /// The app was killed: what its tasks still do does not happen.
        case dead
        /// Something on the way, or the API in trouble, answers.
        case instead(APIAnswer)
    }

    /// How the API treats a key.
    enum Keys: Hashable {
        case keptForEver
        case kept(for: Duration)
        case ignored
    }

    struct Lost: Error {}

    /// A request with a key, as it must arrive each time.
    struct Sent: Equatable {
        var method: RequestMethod
        var target: String
        var body: [UInt8]
    }

    struct State {
        fileprivate var answers: [String: (answer: APIAnswer, time: Int64)] = [:]
        fileprivate var sent: [String: Sent] = [:]
        fileprivate var places: Set<Int> = []
        fileprivate var late: [(Sent, String)] = []
        fileprivate var told: Set<Int> = []
        /// The keys in the order in which they were applied.
        var applied: [String] = []
        /// How often each key was applied and its answer was lost.
        var lostAnswers: [String: Int] = [:]
        var violations: [String] = []
        var requests = 0
        var bulks = 0
    }

    private let keys: Keys
    private let clock: VirtualClock
    private let fate: @Sendable () -> Fate
    private let state = Mutex(State())

    init(_ keys: Keys, _ clock: VirtualClock, fate: @escaping @Sendable () -> Fate) {
        self.keys = keys
        self.clock = clock
        self.fate = fate
    }

    var snapshot: State { state.withLock { $0 } }

    /// Applies the requests that are still on their way.
    func deliverLateRequests() { state.withLock { $0.deliverLate(keys, clock.milliseconds) } }

    func answer(to request: BoundedHTTPRequest, token: String?) async throws -> APIAnswer {
        let fate = fate()
        let key = request.fields.first { $0.name == "Idempotency-Key" }?.value ?? ""
        let method = request.method ?? .get
        let target = String(request.url.path().dropFirst("/v1/".count))
        let sent = Sent(method: method, target: target, body: request.body ?? [])
        if case .dead = fate { throw Lost() }
        return try state.withLock { state in
            state.requests += 1
            let parts = target == "batch" ? try Self.parts(of: sent) : [(sent, key)]
            if target == "batch" { state.bulks += 1 }
            for (sent, key) in parts { state.inspect(sent, key) }
            switch fate {
            case .lostRequest, .dead: throw Lost()
            case .instead(let answer): return answer
            case .late:
                state.late += parts
                throw Lost()
            case .answered, .lostAnswer, .killed: break
            }
            let answers = parts.map { state.handle($0.0, $0.1, keys, clock.milliseconds) }
            guard case .answered = fate else {
                for (sent, key) in parts where sent.method != .get {
                    state.lostAnswers[key, default: 0] += 1
                }
                throw Lost()
            }
            if state.late.count > 1 { state.deliverLate(keys, clock.milliseconds) }
            for answer in answers { state.recordTold(answer) }
            return target == "batch" ? try Self.bulkAnswer(answers) : answers[0]
        }
    }

    // MARK: Bulk requests

    struct Part: Codable {
        var method: String
        var path: String
        var key: String
        var body: PlaceBody?
    }

    struct PartAnswer: Codable {
        var status: Int
        var id: Int?
    }

    /// The endpoint `batch`, which answers each of its requests.
    static let bulk = BulkEndpoint(changesMax: 4) { request in
        request.method == .get ? nil : ""
    } request: { requests in
        try APIRequest(
            .post, "batch",
            json: requests.map {
                Part(
                    method: $0.method.rawValue, path: $0.target,
                    key: $0.headers["Idempotency-Key"] ?? "",
                    body: try $0.body.map {
                        try JSONDecoder().decode(PlaceBody.self, from: Data($0))
                    })
            })
    } answers: { answer, _ in
        try answer.decode([PartAnswer].self).map { part in
            // A part of the batch that the API has not reached.
            guard part.status != 0 else { return nil }
            return .json(part.status, part.id.map { "{\"id\":\($0)}" } ?? "{}")
        }
    }

    private static func parts(of request: Sent) throws -> [(Sent, String)] {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        return try JSONDecoder().decode([Part].self, from: Data(request.body)).map { part in
            guard let method = RequestMethod(rawValue: part.method) else { throw Lost() }
            let body = try part.body.map { Array(try encoder.encode($0)) }
            return (Sent(method: method, target: part.path, body: body ?? []), part.key)
        }
    }

    private static func bulkAnswer(_ answers: [APIAnswer]) throws -> APIAnswer {
        let parts = answers.map { answer in
            PartAnswer(status: answer.status, id: (try? answer.decode(PlaceAnswer.self))?.id)
        }
        return .json(200, String(decoding: try JSONEncoder().encode(parts), as: UTF8.self))
    }
}

extension SimulatedPlaces.State {
    /// Checks what must hold for every request, whether it arrives or not.
    fileprivate mutating func inspect(_ request: SimulatedPlaces.Sent, _ key: String) {
        let segments = request.target.split(separator: "/")
        if segments.first == "places", segments.count == 2,
            Int(segments[1]).map(told.contains) != true
        {
            violations.append("\(request.target) is sent, and the API has not told the number")
        }
        guard request.method != .get else { return }
        if sent[key, default: request] != request {
            violations.append("other bytes are sent with the key \(key)")
        }
        sent[key] = request
    }

    fileprivate mutating func recordTold(_ answer: APIAnswer) {
        if let id = (try? answer.decode(PlaceAnswer.self))?.id { told.insert(id) }
    }

    fileprivate mutating func deliverLate(_ keys: SimulatedPlaces.Keys, _ now: Int64) {
        for (request, key) in late { _ = handle(request, key, keys, now) }
        late = []
    }

    fileprivate mutating func handle(
        _ request: SimulatedPlaces.Sent, _ key: String, _ keys: SimulatedPlaces.Keys, _ now: Int64
    ) -> APIAnswer {
        if request.method == .get {
            // The app asks whether the API has a change.
            let asked = request.target.split(separator: "/").last.map(String.init) ?? ""
            guard applied.contains(asked) else { return .json(404, "{}") }
            return answers[asked]?.answer ?? .json(200, "{}")
        }
        let isKept: Bool =
            switch keys {
            case .keptForEver: true
            case .kept(let duration):
                answers[key].map { .milliseconds(now - $0.time) < duration } ?? false
            case .ignored: false
            }
        if isKept, !key.isEmpty, let known = answers[key] { return known.answer }
        let (answer, isApplied) = apply(request)
        if isApplied { applied.append(key) }
        if !key.isEmpty { answers[key] = (answer, now) }
        return answer
    }

    private mutating func apply(
        _ request: SimulatedPlaces.Sent
    ) -> (answer: APIAnswer, isApplied: Bool) {
        let name = (try? JSONDecoder().decode(PlaceBody.self, from: Data(request.body)))?.name
        if name?.hasPrefix("refused") == true {
            return (.json(422, #"{"detail":"the name is refused"}"#), false)
        }
        if request.method == .post {
            // No device can guess it.
            let number = 1_000_003 &* (applied.count + 17) % 999_983 &* 1_000 + places.count
            places.insert(number)
            return (.json(201, "{\"id\":\(number)}"), true)
        }
        guard let number = request.target.split(separator: "/").last.flatMap({ Int($0) }),
            places.contains(number)
        else { return (.json(404, #"{"detail":"there is no such place"}"#), false) }
        if request.method == .delete { places.remove(number) }
        return (.json(200, "{}"), true)
    }
}

extension APIAnswer {
    static func json(_ status: Int, _ body: String) -> APIAnswer {
        APIAnswer(
            status: status, headers: ["Content-Type": "application/json"], body: Array(body.utf8))
    }

    static func page(_ status: Int) -> APIAnswer {
        APIAnswer(
            status: status, headers: ["Content-Type": "text/html"],
            body: Array("<html>Welcome</html>".utf8))
    }
}

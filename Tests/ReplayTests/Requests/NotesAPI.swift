// An app with notes, and the API that it has: the server makes the notes' numbers, and applies an idempotency key
// once. The network between them fails as the choices say.

import DaybookTestKit
import EventSourcing
import Foundation
import LogFormat
import LogStorage
import Replay
import RequestHistories
import Synchronization
import Testing

struct MemoAdded: EventPayload, Codable {
    static let type = "com.example.note.added"
    var note: String
    var text: String
    var subject: String? { note }
}

struct LineAdded: EventPayload, Codable {
    static let type = "com.example.line.added"
    var note: String
    var text: String
    var subject: String? { note }
}

/// A change of the device alone: it needs no request.
struct MemoPinned: EventPayload, Codable {
    static let type = "com.example.note.pinned"
    var note: String
    var subject: String? { note }
}

/// What the answer to `MemoAdded` teaches.
struct MemoNumbered: EventPayload, Codable {
    static let type = "com.example.note.numbered"
    var note: String
    var number: Int
    var subject: String? { note }
}

struct MemoNumbers: Projection, Codable {
    static let name = "numbers"
    static let version = 1
    private(set) var numbers: [String: Int] = [:]

    mutating func fold(_ event: Event) {
        guard event.type == MemoNumbered.type,
            let note = try? event.payload(as: MemoNumbered.self)
        else { return }
        numbers[note.note] = note.number
    }
}

/// The body and the answer of the API.
struct Line: Codable { var text: String }
struct Created: Codable { var number: Int }

/// The rules of the app, with their requests.
///
/// - Parameter suffix: what a release of the app appends to each text.
func noteRules(suffix: String = "") -> [EventRule] {
    [
        .of(MemoAdded.self, action: "ADD_NOTE", beginsEntity: true) { note, context in
            try APIRequest(
                .post, "notes", query: [URLQueryItem(name: "client", value: note.note)],
                json: Line(text: note.text + suffix))
        } learning: { answer, note in
            let created = try answer.decode(Created.self)
            return [MemoNumbered(note: note.note, number: created.number)]
        },
        .of(LineAdded.self, action: "ADD_LINE") { line, context in
            guard let number = context.view(MemoNumbers.self).numbers[line.note] else {
                throw RequestNotReady("the note has no number yet")
            }
            return try APIRequest(
                .post, "notes", "\(number)", "lines", json: Line(text: line.text + suffix))
        },
        .of(MemoPinned.self, action: "PIN_NOTE") { _, _ in nil },
        .of(MemoNumbered.self),
    ]
}

/// The API in memory.
final class NotesAPI: APIClient {
    struct Received: Equatable {
        var method: RequestMethod?
        var target: String
        var headers: [String: String]
        var body: String
        var isSentOnce: Bool
    }

    fileprivate struct State {
        var notes: [Int: [String]] = [:]
        var numbers: [String: Int] = [:]
        var answers: [String: (request: Received, answer: APIAnswer)] = [:]
        var requests: [Received] = []
        var violations: [String] = []
        var applied = 0
    }

    private let state = Mutex(State())
    private let honoursKeys: Bool
    private let fate: @Sendable (Received) -> RequestFate
    struct Lost: Error {}

    /// - Parameters:
    ///   - honoursKeys: whether a key is applied once.
    ///   - fate: decides what happens to a request.
    init(
        honoursKeys: Bool = true,
        fate: @escaping @Sendable (Received) -> RequestFate = { _ in .answered }
    ) {
        self.honoursKeys = honoursKeys
        self.fate = fate
    }

    /// The lines of the notes, by the name that the client gave the note.
    var notes: [String: [String]] {
        state.withLock { state in state.numbers.mapValues { state.notes[$0] ?? [] } }
    }
    var requests: [Received] { state.withLock { $0.requests } }
    var violations: [String] { state.withLock { $0.violations } }
    /// The number of changes that were applied, doubled ones included.
    var applied: Int { state.withLock { $0.applied } }

    /// The API forgets all keys.
    func forgetKeys() { state.withLock { $0.answers = [:] } }

    func answer(to request: BoundedHTTPRequest, token: String?) async throws -> APIAnswer {
        let received = Received(
            method: request.method, target: request.url.absoluteString,
            headers: Dictionary(uniqueKeysWithValues: request.fields.map { ($0.name, $0.value) }),
            body: String(decoding: request.body ?? [], as: UTF8.self),
            isSentOnce: request.isSentOnce)
        let fate = fate(received)
        switch fate {
        case .lostRequest, .dead, .late: throw Lost()
        case .instead(let answer): return answer
        case .failed(let error): throw error
        case .answered, .lostAnswer, .killed, .lateList: break
        }
        let answer = state.withLock { $0.handle(received, honoursKeys) }
        guard case .answered = fate else { throw Lost() }
        return answer
    }
}

extension NotesAPI.State {
    fileprivate mutating func handle(
        _ request: NotesAPI.Received, _ honoursKeys: Bool
    ) -> APIAnswer {
        requests.append(request)
        let key = request.headers["Idempotency-Key"] ?? ""
        if honoursKeys, let known = answers[key] {
            if known.request != request { violations.append("other bytes under the key \(key)") }
            return known.answer
        }
        let answer = apply(request)
        answers[key] = (request, answer)
        return answer
    }

    private mutating func apply(_ request: NotesAPI.Received) -> APIAnswer {
        guard let url = URLComponents(string: request.target),
            let line = try? JSONDecoder().decode(Line.self, from: Data(request.body.utf8))
        else { return .json(400, #"{"detail":"no line"}"#) }
        if let client = url.queryItems?.first(where: { $0.name == "client" })?.value {
            if request.method == .get {
                return numbers[client].map { .json(200, "{\"number\":\($0)}") } ?? .json(404, "{}")
            }
            if numbers[client] != nil { violations.append("\(client) was added twice") }
            let number = notes.count + 1
            (notes[number], numbers[client]) = ([line.text], number)
            applied += 1
            return .json(201, "{\"number\":\(number)}")
        }
        guard let number = url.path.split(separator: "/").compactMap({ Int($0) }).first,
            notes[number] != nil
        else {
            violations.append("\(request.target) is not known")
            return .json(404, "{}")
        }
        if line.text.contains("refused") { return .json(422, #"{"detail":"it is refused"}"#) }
        notes[number, default: []].append(line.text)
        applied += 1
        return .json(200, "{}")
    }
}

/// A device with notes.
struct NotesDevice {
    let clock = VirtualClock()
    var files = InMemoryFileSystem()
    var store: EventStore
    var promise = RequestPromise.once(keysKeptFor: nil)
    var api: NotesAPI
    private var starts: UInt64 = 1
    private let account: String?

    init(
        _ api: NotesAPI, rules: [EventRule] = noteRules(), account: String? = nil
    ) async throws {
        self.api = api
        self.account = account
        store = try await Self.open(files, clock, rules, account, seed: 1)
    }

    private static func open(
        _ files: InMemoryFileSystem, _ clock: VirtualClock, _ rules: [EventRule],
        _ account: String?, seed: UInt64
    ) async throws -> EventStore {
        try await EventStore.open(
            at: "/log", account: account, catalogue: EventCatalogue(rules),
            views: [Outbox.self, MemoNumbers.self],
            environment: clock.environment(fileSystem: files, seed: seed))
    }

    /// Opens the log again as it is on the disk: the process was killed.
    mutating func reopen(
        _ snapshot: InMemoryFileSystem? = nil, rules: [EventRule] = noteRules()
    ) async throws {
        files = snapshot ?? files.snapshot()
        starts += 1
        store = try await Self.open(files, clock, rules, account, seed: starts)
    }

    func transport(
        api name: String = "notes", at base: String = "https://api.example.com/v1",
        verdict: @escaping @Sendable (APIAnswer) throws -> APIVerdict? = { _ in nil }
    ) throws -> RequestTransport {
        try RequestTransport(
            store, api: name, at: try #require(URL(string: base)), promise: promise, client: api,
            verdict: verdict)
    }

    /// - Parameter transport: the transport; nil for that of the device.
    @discardableResult
    func run(
        over transport: RequestTransport? = nil, as user: any Credentials = NoCredentials()
    ) async throws -> SyncReport {
        let clock = clock
        var options = Replayer.Options()
        // The same order of requests in every run.
        options.requestsMax = 1
        return try await Replayer(
            store, transport: transport ?? self.transport(), credentials: user, options: options
        ) {
            clock.advance(by: $0)
        }.run()
    }

    /// The first event of the outbox.
    var firstEntry: OutboxEntry? { store.view(Outbox.self).entries.first { _ in true } }
}

// An app with places, and the API that it reads them from: in memory, listed by time, by cursor, or all of them with an
// ETag. What happens to a request is decided from outside.

import EventSourcing
import Foundation
import LogFormat
import Replay
import Synchronization

struct PlaceTitled: EventPayload, Codable {
    static let type = "com.example.place.titled"
    var place: String
    var title: String
    var subject: String? { place }
}

struct PlaceState: APIState, Codable {
    static let type = "com.example.place.state"
    var place: String
    var title: String
    var tag: String?
    var number: Int64?
    var isDeleted = false
    var subject: String? { place }
    var apiVersion: APIVersion { number.map { .number($0) } ?? .tag(tag ?? "") }
}

/// The titles, in the order of the log.
struct Places: Projection, Codable {
    static let name = "places"
    static let version = 1
    private(set) var titles: [String: String] = [:]

    mutating func fold(_ event: Event) {
        if let change = try? event.payload(as: PlaceTitled.self) {
            titles[change.place] = change.title
        } else if let state = try? event.payload(as: PlaceState.self) {
            titles[state.place] = state.isDeleted ? nil : state.title
        }
    }
}

/// The titles, of each the one with the greatest LWW timestamp.
struct NewestPlaces: Projection, Codable {
    static let name = "newest-places"
    static let version = 1
    private var newest: [String: LWWTimestamp] = [:]
    private var all: [String: String?] = [:]
    var titles: [String: String] { all.compactMapValues { $0 } }

    mutating func fold(_ event: Event) {
        let change = try? event.payload(as: PlaceTitled.self)
        let state = try? event.payload(as: PlaceState.self)
        guard let place = change?.place ?? state?.place else { return }
        guard newest[place].map({ $0 < event.lwwTimestamp }) ?? true else { return }
        newest[place] = event.lwwTimestamp
        all[place] = .some(state?.isDeleted == true ? nil : change?.title ?? state?.title)
    }
}

/// A row of the API.
struct PlaceRow: Codable, Equatable {
    var id: String
    var title: String
    var rev: Int64
    var deleted = false
}

/// The API in memory.
final class PlacesAPI: APIClient {
    enum Form: CaseIterable { case since, cursor, everything }

    /// What happens to a request.
    enum Fate {
        case answered
        case lostRequest
        case lostAnswer
        case killed
        case instead(APIAnswer)
        /// A list as it was some changes ago.
        case late(Int)
    }

    struct State {
        var rows: [String: PlaceRow] = [:]
        /// All rows ever, in the order of their numbers.
        var history: [PlaceRow] = []
        var last: Int64 = 0
        var answers: [String: APIAnswer] = [:]
        /// How often each title of a device was applied.
        var applied: [String: Int] = [:]

        mutating func set(_ id: String, _ title: String, deleted: Bool = false) {
            last += 1
            let row = PlaceRow(id: id, title: title, rev: last, deleted: deleted)
            rows[id] = row
            history.append(row)
        }
    }

    let state = Mutex(State())
    let form: Form
    /// Whether versions are tags of the content, which come back.
    let hasTags: Bool
    private let limit: Int
    private let fate: @Sendable (BoundedHTTPRequest) -> Fate
    struct Lost: Error {}

    init(
        _ form: Form, hasTags: Bool = false, limit: Int = 100,
        fate: @escaping @Sendable (BoundedHTTPRequest) -> Fate = { _ in .answered }
    ) {
        self.form = form
        self.hasTags = hasTags
        self.limit = limit
        self.fate = fate
    }

    /// The titles of the rows that are not deleted.
    var titles: [String: String] {
        state.withLock { $0.rows.filter { !$0.value.deleted }.mapValues(\.title) }
    }

    func set(_ id: String, _ title: String) { state.withLock { $0.set(id, title) } }
    func delete(_ id: String) {
        state.withLock { if $0.rows[id]?.deleted == false { $0.set(id, "", deleted: true) } }
    }

    func answer(to request: BoundedHTTPRequest, token: String?) async throws -> APIAnswer {
        try respond(to: request)
    }

    func respond(to request: BoundedHTTPRequest) throws -> APIAnswer {
        let fate = fate(request)
        var late = 0
        switch fate {
        case .lostRequest: throw Lost()
        case .instead(let answer): return answer
        case .late(let count): late = count
        case .answered, .lostAnswer, .killed: break
        }
        let answer = state.withLock { handle(request, &$0, late) }
        switch fate {
        case .lostAnswer, .killed: throw Lost()
        default: return answer
        }
    }

    private func handle(
        _ request: BoundedHTTPRequest, _ state: inout State, _ late: Int
    ) -> APIAnswer {
        let fields = Dictionary(request.fields.map { ($0.name, $0.value) }) { $1 }
        let url = URLComponents(url: request.url, resolvingAgainstBaseURL: false)
        guard request.method != .get else { return list(url, fields, state, late) }
        let key = fields["Idempotency-Key"] ?? ""
        if let known = state.answers[key] { return known }
        let id = request.url.lastPathComponent
        guard
            let body = try? JSONDecoder().decode(
                [String: String].self, from: Data(request.body ?? [])),
            let title = body["title"]
        else { return .json(400, "{}") }
        let row = state.rows[id]
        if let expected = fields["If-Match"] {
            guard let row, !row.deleted, version(row) == expected else { return .json(412, "{}") }
        }
        state.set(id, title)
        state.applied[title, default: 0] += 1
        let answer = json(state.rows[id])
        state.answers[key] = answer
        return answer
    }

    func version(_ row: PlaceRow) -> String { hasTags ? "t \(row.title)" : "\(row.rev)" }

    private func json(_ value: some Encodable, _ headers: [String: String] = [:]) -> APIAnswer {
        let body = (try? JSONEncoder().encode(value)).map(Array.init) ?? []
        return APIAnswer(
            status: 200, headers: headers.merging(["Content-Type": "application/json"]) { $1 },
            body: body)
    }

    private struct Page: Encodable {
        var data: [PlaceRow]
        var next: String?
    }

    private func list(
        _ url: URLComponents?, _ fields: [String: String], _ state: State, _ late: Int
    ) -> APIAnswer {
        let history = state.history.dropLast(late)
        var rows: [String: PlaceRow] = [:]
        for row in history { rows[row.id] = row }
        let after = url?.queryItems?.first { $0.name == "after" }?.value
        let position = after.flatMap { Int64($0) } ?? 0
        switch form {
        case .since:
            let page = rows.values.filter { $0.rev >= position }.sorted { $0.rev < $1.rev }
            return json(Page(data: Array(page.prefix(limit))))
        case .cursor:
            let page = Array(history.filter { $0.rev > position }.prefix(limit))
            return json(Page(data: page, next: page.last.map { "\($0.rev)" }))
        case .everything:
            let all = rows.values.filter { !$0.deleted }.sorted { $0.id < $1.id }
            let page = Array(all.dropFirst(Int(position)).prefix(limit))
            let end = Int(position) + page.count
            let tag = "\"" + all.map { "\($0.id)=\(version($0))" }.joined(separator: ";") + "\""
            if fields["If-None-Match"] == tag { return APIAnswer(status: 304) }
            return json(
                Page(data: page, next: end < all.count ? "\(end)" : nil), ["ETag": tag])
        }
    }

    /// The source that reads the list.
    var source: PullSource {
        let form: PullSource.Form =
            switch form {
            case .since: .since(overlap: 2)
            case .cursor: .cursor
            case .everything: .everything
            }
        return PullSource(of: PlaceState.self, form, list: "data") { position in
            APIRequest(
                .get, "places",
                query: position.text.map { [URLQueryItem(name: "after", value: $0)] } ?? [])
        } next: { answer in
            struct Next: Decodable { var next: String? }
            return try answer.decode(Next.self).next
        } state: { [self] (row: PlaceRow, _) in
            placeState(row)
        } deletion: {
            PlaceState(place: $0, title: "", isDeleted: true)
        }
    }

    func placeState(_ row: PlaceRow) -> PlaceState {
        hasTags
            ? PlaceState(
                place: row.id, title: row.title,
                tag: row.deleted ? "gone \(row.rev)" : version(row),
                isDeleted: row.deleted)
            : PlaceState(
                place: row.id, title: row.title, number: row.rev, isDeleted: row.deleted)
    }

    /// The rules of the app.
    ///
    /// - Parameters:
    ///   - matches: whether a change has the version on which it is based.
    ///   - teaches: whether the answer to a change teaches the state.
    func rules(matches: Bool, teaches: Bool) -> [EventRule] {
        [
            .of(PlaceTitled.self, action: "TITLE_PLACE") { change, context in
                let version = matches ? context.version(of: PlaceState.self)?.text : nil
                return try APIRequest(
                    .put, "places", change.place,
                    headers: version.map { ["If-Match": $0] } ?? [:], json: ["title": change.title])
            } learning: { [self] answer, _ in
                guard teaches else { return [] }
                return [placeState(try answer.decode(PlaceRow.self))]
            },
            .of(PlaceState.self),
        ]
    }
}

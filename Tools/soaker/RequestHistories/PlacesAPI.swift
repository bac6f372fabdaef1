// An API whose places and shops an app reads and changes, in memory. Each list is since a number, by cursor, or all of
// it with an ETag. What happens to a request is decided from outside.

import EventSourcing
import Foundation
import Replay
import Synchronization

/// A row of the API.
package struct PlaceRow: Codable, Equatable, Sendable {
    package var id: String
    package var title: String
    package var rev: Int64
    package var deleted = false
}

/// The API in memory.
package final class PlacesAPI: APIClient {
    package enum Form: CaseIterable, Sendable { case since, cursor, everything }

    /// How the API lists and compares.
    package struct Manners: Sendable {
        /// The forms of the lists of places and of shops.
        package var places = Form.since
        package var shops: Form?
        /// Whether versions are tags of the content, which come back.
        package var hasTags = false
        /// Whether two changes in a row have the same number.
        package var hasTies = false
        /// The most elements of a page.
        package var limit = 100
        /// Whether the pages of a list of everything begin at an offset, and not after an id.
        package var hasOffsets = true
        /// Whether a request that the API has applied before is compared with the version all the same.
        package var comparesFirst = false

        package init() {}

        /// Whether versions grow with every change.
        var ordersChanges: Bool { !hasTags && !hasTies }
    }

    /// A row that was set, by a request with a key or elsewhere.
    struct Change {
        var row: PlaceRow
        var key: String?
    }

    /// A request that was applied.
    struct Application {
        var key: String
        /// What it has overwritten; nil for nothing, or a deleted row.
        var overwritten: Change?
    }

    package struct State {
        package var rows: [String: PlaceRow] = [:]
        /// All rows ever, in order.
        var history: [Change] = []
        var answers: [String: APIAnswer] = [:]
        var applications: [Application] = []
        fileprivate var late: [BoundedHTTPRequest] = []
        fileprivate var created = 0

        /// How often each request was applied, by its key.
        package var applied: [String: Int] {
            Dictionary(applications.map { ($0.key, 1) }, uniquingKeysWith: +)
        }

        /// The rows as they were after a number of changes.
        func rows(after count: Int) -> [String: PlaceRow] {
            var rows: [String: PlaceRow] = [:]
            for change in history.prefix(count) { rows[change.row.id] = change.row }
            return rows
        }
    }

    package let state = Mutex(State())
    package let manners: Manners
    private let fate: @Sendable (BoundedHTTPRequest) -> RequestFate
    package struct Lost: Error {}

    package init(
        _ manners: Manners, fate: @escaping @Sendable (BoundedHTTPRequest) -> RequestFate
    ) {
        self.manners = manners
        self.fate = fate
    }

    package convenience init(
        _ form: Form, hasTags: Bool = false, limit: Int = 100,
        fate: @escaping @Sendable (BoundedHTTPRequest) -> RequestFate = { _ in .answered }
    ) {
        var manners = Manners()
        (manners.places, manners.hasTags, manners.limit) = (form, hasTags, limit)
        self.init(manners, fate: fate)
    }

    /// The titles of the rows that are not deleted.
    package var titles: [String: String] {
        state.withLock { $0.rows.filter { !$0.value.deleted }.mapValues(\.title) }
    }

    package func set(_ id: String, _ title: String) {
        state.withLock { set(id, title, by: nil, &$0) }
    }

    package func delete(_ id: String) {
        state.withLock {
            if $0.rows[id]?.deleted == false { set(id, "", deleted: true, by: nil, &$0) }
        }
    }

    private func set(
        _ id: String, _ title: String, deleted: Bool = false, by key: String?, _ state: inout State
    ) {
        let count = Int64(state.history.count + 1)
        let number = manners.hasTies ? count / 2 : count
        let row = PlaceRow(id: id, title: title, rev: number, deleted: deleted)
        state.rows[id] = row
        state.history.append(Change(row: row, key: key))
    }

    /// The version of a row, for `If-Match`.
    package func version(_ row: PlaceRow) -> String {
        manners.hasTags ? "t \(row.title)" : "\(row.rev)"
    }

    // MARK: Requests

    package func answer(to request: BoundedHTTPRequest, token: String?) async throws -> APIAnswer {
        try respond(to: request)
    }

    package func respond(to request: BoundedHTTPRequest) throws -> APIAnswer {
        let fate = fate(request)
        var late = 0
        switch fate {
        case .lostRequest, .dead: throw Lost()
        case .instead(let answer): return answer
        case .failed(let error): throw error
        case .lateList(let count): late = count
        case .late:
            if request.method != .get { state.withLock { $0.late.append(request) } }
            throw Lost()
        case .answered, .lostAnswer, .killed: break
        }
        let answer = state.withLock { state in
            let answer = handle(request, &state, late)
            if state.late.count > 1 { deliverLate(&state) }
            return answer
        }
        switch fate {
        case .lostAnswer, .killed: throw Lost()
        default: return answer
        }
    }

    /// Applies the requests that are still on their way.
    func deliverLateRequests() { state.withLock { deliverLate(&$0) } }

    private func deliverLate(_ state: inout State) {
        for request in state.late { _ = handle(request, &state, 0) }
        state.late = []
    }

    private func handle(
        _ request: BoundedHTTPRequest, _ state: inout State, _ late: Int
    ) -> APIAnswer {
        let fields = Dictionary(request.fields.map { ($0.name, $0.value) }) { $1 }
        let last = request.url.lastPathComponent
        guard request.method != .get else {
            if request.url.path().contains("/changes/") {
                return state.answers[last] ?? .json(404, "{}")
            }
            let url = URLComponents(url: request.url, resolvingAgainstBaseURL: false)
            let after = url?.queryItems?.first { $0.name == "after" }?.value
            return list(last, after, fields["If-None-Match"], state, late)
        }
        let key = request.key ?? ""
        let id = request.method == .post ? "\(1_000 + state.created)" : last
        let fault = precondition(fields, state.rows[id])
        if manners.comparesFirst, let fault { return fault }
        if let known = state.answers[key] { return known }
        if let fault { return fault }
        guard let title = Self.title(of: request) else { return .json(400, "{}") }
        guard !title.hasPrefix("refused") else {
            return .json(422, #"{"detail":"the title is refused"}"#)
        }
        let overwritten = state.history.last { $0.row.id == id && !$0.row.deleted }
        let isThere = state.rows[id]?.deleted == false
        state.applications.append(
            Application(key: key, overwritten: isThere ? overwritten : nil))
        if request.method == .post { state.created += 1 }
        set(id, title, deleted: request.method == .delete, by: key, &state)
        let answer = json(state.rows[id])
        state.answers[key] = answer
        return answer
    }

    private static func title(of request: BoundedHTTPRequest) -> String? {
        guard request.method != .delete else { return "" }
        return try? JSONDecoder().decode([String: String].self, from: Data(request.body ?? []))[
            "title"]
    }

    private func precondition(_ fields: [String: String], _ row: PlaceRow?) -> APIAnswer? {
        let current = row.flatMap { $0.deleted ? nil : version($0) }
        if let expected = fields["If-Match"], current != expected { return .json(412, "{}") }
        return fields["If-None-Match"] == "*" && current != nil ? .json(412, "{}") : nil
    }

    private func json(_ value: some Encodable, _ headers: [String: String] = [:]) -> APIAnswer {
        let body = (try? JSONEncoder().encode(value)).map(Array.init) ?? []
        return APIAnswer(
            status: 200, headers: headers.merging(["Content-Type": "application/json"]) { $1 },
            body: body)
    }

    // MARK: Lists

    private struct Page: Encodable {
        var data: [PlaceRow]
        var next: String?
    }

    private func list(
        _ path: String, _ after: String?, _ known: String?, _ state: State, _ late: Int
    ) -> APIAnswer {
        let isShops = path == ShopsList.path
        let count = max(0, state.history.count - late)
        let rows = state.rows(after: count).values.filter { $0.id.hasPrefix("s") == isShops }
        switch isShops ? manners.shops ?? .everything : manners.places {
        case .since:
            let position = after.flatMap { Int64($0) } ?? 0
            let page = rows.filter { $0.rev >= position }.sorted {
                ($0.rev, $0.id) < ($1.rev, $1.id)
            }
            return json(Page(data: Array(page.prefix(manners.limit))))
        case .cursor:
            // All changes; with versions that do not order them, the last one of each row.
            let feed = state.history.prefix(count).enumerated().filter { _, change in
                change.row.id.hasPrefix("s") == isShops
                    && (manners.ordersChanges || rows.contains(change.row))
            }
            let position = after.flatMap { Int($0) } ?? 0
            let page = feed.filter { $0.offset >= position }.prefix(manners.limit)
            return json(
                Page(data: page.map(\.element.row), next: page.last.map { "\($0.offset + 1)" }))
        case .everything:
            let all = rows.filter { !$0.deleted }.sorted { $0.id < $1.id }
            let start =
                manners.hasOffsets
                ? after.flatMap { Int($0) } ?? 0
                : after.flatMap { after in all.firstIndex { $0.id > after } ?? all.count } ?? 0
            let page = Array(all.dropFirst(start).prefix(manners.limit))
            let end = start + page.count
            let next = manners.hasOffsets ? "\(end)" : page.last?.id
            let rows = all.map { "\($0.id)=\(version($0)) \($0.title)" }
            let tag = "\"" + rows.joined(separator: ";") + "\""
            if known == tag { return APIAnswer(status: 304) }
            return json(Page(data: page, next: end < all.count ? next : nil), ["ETag": tag])
        }
    }
}

extension BoundedHTTPRequest {
    /// Whether it reads a list.
    var isRead: Bool { method == .get && !url.path().contains("/changes/") }

    /// Its idempotency key.
    var key: String? { fields.first { $0.name == "Idempotency-Key" }?.value }
}

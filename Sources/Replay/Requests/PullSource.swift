// What an app reads from its own API: the request for a page, and the states in it. Before RequestTransport+Reading.
// Spec/protocol/reading.md, READ-1 and READ-2.

import EventSourcing
import Foundation
import LogFormat

/// A list of entities that an app's own API has, and how it is read.
///
/// ```swift
/// let places = PullSource(
///     of: PlaceState.self, .updatedSince()
/// ) { position in
///     APIRequest(.get, "places", query: position.query("updated_since"))
/// } state: { (row: PlaceRow, _) in
///     PlaceState(place: row.id, name: row.name, updated: row.updatedAt)
/// }
/// ```
///
/// Give it to `RequestTransport`; each sync reads what is new.
public struct PullSource: Sendable {
    /// Which entities the API lists.
    public enum Form: Hashable, Sendable {
        /// Those whose version is at least a number, in ascending order of the number. The cursor is the greatest number
        /// that was read. `overlap`: how much earlier each read begins, in the unit of the number, for states that the API
        /// shows late.
        case since(overlap: Int64)
        /// Those after a cursor that the API gives with each page.
        case cursor
        /// All of them, on one page or several. An entity that the API listed before, and lists no more, is deleted; a list
        /// of several pages is read twice for it. With one page, its ETag is sent the next time, and 304 shows that nothing
        /// is new.
        case everything

        var isSinceNumber: Bool { if case .since = self { true } else { false } }

        /// Its part of the name under which a cursor is recorded.
        fileprivate var name: String {
            switch self {
            case .since: "since"
            case .cursor: "cursor"
            case .everything: "everything"
            }
        }

        /// Those that have changed since a time, versions being times (`APIVersion.timestamp`).
        public static func updatedSince(overlap: Duration = .zero) -> Form {
            .since(overlap: Int64(overlap / .microseconds(1)))
        }
    }

    /// The type of the states.
    let type: String
    let version: Int
    let form: Form
    let list: String?
    let request: @Sendable (PullPosition) throws -> APIRequest
    let next: @Sendable (APIAnswer) throws -> String?
    let state: @Sendable ([UInt8], PullContext) throws -> (any APIState)?
    let deletion: (@Sendable (String) -> any APIState)?

    /// Creates a source.
    ///
    /// - Parameters:
    ///   - type: the type of the states. Its rule has no action.
    ///   - version: to be raised when `request` or `state` changes its meaning: then everything is read again.
    ///   - form: which entities the API lists.
    ///   - list: the member of the body that has the list; nil if the body is the list.
    ///   - request: the request for a page. Sent with `Accept: application/json`.
    ///   - next: the cursor after a page, from its answer; nil after the last page.
    ///   - state: the state that an element of the list shows; nil if it shows none. If it throws, the element is left
    ///     out and counted in `SyncReport.unusable`; after `RequestNotReady` it is read again with the next read.
    ///   - deletion: the state of an entity that a complete list lacks; nil to keep the entity. For `everything`.
    public init<Row: Decodable & SendableMetatype, State: APIState>(
        of type: State.Type, version: Int = 1, _ form: Form, list: String? = nil,
        request: @escaping @Sendable (PullPosition) throws -> APIRequest,
        next: @escaping @Sendable (APIAnswer) throws -> String? = { _ in nil },
        state: @escaping @Sendable (Row, PullContext) throws -> State?,
        deletion: (@Sendable (String) -> State)? = nil
    ) {
        self.type = State.type
        self.version = version
        self.form = form
        self.list = list
        self.request = request
        self.next = next
        self.state = { (json: [UInt8], context: PullContext) throws -> (any APIState)? in
            let decoder = JSONDecoder()
            decoder.dateDecodingStrategy = .iso8601
            let row = try decoder.decode(Row.self, from: Data(json))
            return try state(row, context)
        }
        if let deletion {
            self.deletion = { (entity: String) -> any APIState in deletion(entity) }
        } else {
            self.deletion = nil
        }
    }

    /// The name under which the cursor is recorded: a cursor of another version or form is not used.
    var name: String { "\(type)/\(version)/\(form.name)" }
}

/// Where a page begins.
public struct PullPosition: Hashable, Sendable {
    /// The cursor, or the number in decimal digits; nil for the first page.
    public var text: String?

    /// The number, for `PullSource.Form.since`.
    public var number: Int64? { text.flatMap { Int64($0) } }

    /// The number as a time in RFC 3339 with microseconds, for `PullSource.Form.updatedSince`.
    public var time: String? { number.map { Microseconds($0).text } }

    /// The time, as a query item with a name; none for the first page.
    public func query(_ name: String) -> [URLQueryItem] {
        time.map { [URLQueryItem(name: name, value: $0)] } ?? []
    }
}

/// What an app may use to read an element.
public struct PullContext: Sendable {
    private let store: EventStore

    init(_ store: EventStore) { self.store = store }

    /// The state of a view at this moment. O(1).
    public func view<View: Projection>(_ view: View.Type) -> View { store.view(view) }

    /// True if the API may have applied changes of this device whose answers are not known: an element of an entity that
    /// the app does not know may be one that it has created. Then throw `RequestNotReady`. O(outbox).
    public var hasUnsettledChanges: Bool {
        let outbox = store.view(Outbox.self)
        return outbox.entries.contains { outbox.mayBeApplied($0, store.incarnation) }
    }
}

/// The cursors of all sources, and the page that is read next: the cursor of a read of the API.
struct PullCursor: Codable, Hashable {
    /// The API and the account of the cursors.
    private var api: String
    private var account: String?
    /// The cursors on record, by the sources' names.
    var sources: [String: String] = [:]
    /// The index of the source that is being read; nil before the first page.
    private var index: Int?
    /// The position in its list; nil at the beginning.
    private(set) var page: String?
    /// True if an element of an earlier page waits: then the source's cursor stays.
    private(set) var isHeld: Bool?
    /// True while a list of several pages is read again, because it lacked entities.
    private(set) var isSecond: Bool?

    /// Reads a cursor. One of another API or account counts as none.
    init(_ text: String?, api: String, account: String?) {
        self.api = api
        self.account = account
        if let text, let cursor = try? JSONDecoder().decode(Self.self, from: Data(text.utf8)),
            cursor.api.utf8.elementsEqual(api.utf8),
            (cursor.account ?? "").utf8.elementsEqual((account ?? "").utf8)
        {
            self = cursor
        }
    }

    /// The index of the source that is read.
    var source: Int { index ?? 0 }

    /// The next page of the source.
    func continuing(at page: String, isHeld: Bool) -> PullCursor {
        var cursor = self
        (cursor.index, cursor.page, cursor.isHeld) = (source, page, isHeld)
        return cursor
    }

    /// The first page of the source once more.
    func again(isHeld: Bool) -> PullCursor {
        var cursor = self
        (cursor.index, cursor.page, cursor.isHeld) = (source, nil, isHeld)
        cursor.isSecond = true
        return cursor
    }

    /// The cursor with another one of a source; nil for none.
    func recording(_ text: String?, of source: PullSource) -> PullCursor {
        var cursor = self
        cursor.sources[source.name] = text
        return cursor
    }

    /// The first page of the next source; nil after the last.
    func nextSource(of count: Int) -> PullCursor? {
        guard source + 1 < count else { return nil }
        var cursor = self
        (cursor.index, cursor.page, cursor.isHeld) = (source + 1, nil, nil)
        cursor.isSecond = nil
        return cursor
    }

    /// Whether the first page after a recorded cursor was asked for: then the list can be read from its beginning.
    func canBeginAgain(_ source: PullSource) -> Bool {
        source.form == .cursor && page == nil && sources[source.name] != nil
    }

    /// The cursor without the page.
    var recorded: PullCursor {
        var cursor = self
        (cursor.index, cursor.page, cursor.isHeld) = (nil, nil, nil)
        cursor.isSecond = nil
        return cursor
    }

    /// The text, equal for equal cursors.
    var text: String? {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        return (try? encoder.encode(self)).map { String(decoding: $0, as: UTF8.self) }
    }
}

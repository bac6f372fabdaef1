// The elements of a list that cannot be stored: each is left out alone and reported with its index, so that
// one bad element of a server does not hold the whole list.

import Daybook
import Foundation

/// An element of a list that could not be stored.
public struct ListFault: Hashable, Sendable, CustomStringConvertible {
    /// The element's index in the given list.
    public let index: Int
    /// The element's id or code.
    public let id: String
    /// The reason, with the location in the list: `cities[3].name is empty`.
    public let reason: String

    /// The reason.
    public var description: String { reason }
}

/// The elements of a list that can be stored, and the others.
struct StorableElements<Element> {
    private(set) var elements: [Element] = []
    private(set) var leftOut: [ListFault] = []
    /// The index of each element in the given list.
    private var indexes: [Int] = []
    /// The approximate bytes of the event of each element in the log.
    private var bytes: [Int] = []

    /// Checks each element alone.
    ///
    /// - Parameters:
    ///   - all: the given elements.
    ///   - name: the name of the list in reasons.
    ///   - id: the key of an element.
    ///   - path: the path of the element in `event`; nil for the only element of its member `name`.
    ///   - repeats: whether an id may occur again. Else the second element with an id is left out.
    ///   - event: the event that stores the element.
    /// - Throws: `EventError` if no element of a list that is not empty can be stored: what is stored stays.
    init<Payload: EventPayload>(
        of all: [Element], _ name: String, id: KeyPath<Element, String>, path: String? = nil,
        repeats: Bool = false, event: (Element) -> Payload
    ) throws {
        let path = path ?? "data.\(name)[0]"
        var ids: Set<EntityID> = []
        var first: EventError?
        for (index, element) in all.enumerated() {
            do {
                let draft = try EventDraft.checked(event(element))
                guard ids.insert(EntityID(element[keyPath: id])).inserted || repeats else {
                    throw EventError(
                        .invalidData, "\(path): \(element[keyPath: id]) occurs twice")
                }
                elements.append(element)
                indexes.append(index)
                bytes.append((draft.json?.count ?? 0) + 512)
            } catch let error as EventError {
                first = first ?? error
                leftOut.append(
                    ListFault(
                        index: index, id: element[keyPath: id],
                        reason: ListFault.reason(error, path, in: name, index)))
            }
        }
        if elements.isEmpty, let first { throw first }
    }

    /// The elements for a list that replaces a stored one: in the place of an element that was left out its stored
    /// version, if there is one. If the id of an element is not known, it may be that of any stored element: then all
    /// of these stay, the other ones at the end.
    ///
    /// - Parameters:
    ///   - unread: the ids of further elements that could not be read, empty if unknown.
    ///   - known: the stored list.
    func keeping(
        _ known: [Element], unread: [String] = [], id: KeyPath<Element, String>
    ) -> [Element] {
        let unread = unread.map { (id: $0, index: Int.max) }
        let faults = leftOut.map { (id: $0.id, index: $0.index) } + unread
        guard !faults.isEmpty else { return elements }
        let stored = Dictionary(known.map { (EntityID($0[keyPath: id]), $0) }) { first, _ in first }
        var ids = Set(elements.map { EntityID($0[keyPath: id]) })
        var list = zip(indexes, elements).map { (index: $0, element: $1) }
        for fault in faults {
            guard let kept = stored[EntityID(fault.id)], ids.insert(EntityID(fault.id)).inserted
            else { continue }
            let place = list.firstIndex { $0.index > fault.index } ?? list.count
            list.insert((fault.index, kept), at: place)
        }
        let keepsAll = faults.contains { !EntityID.isIdentifier($0.id) }
        let others = keepsAll ? known.filter { ids.insert(EntityID($0[keyPath: id])).inserted } : []
        return list.map(\.element) + others
    }

    /// Keeps the last of the elements with one id.
    mutating func keepLast(of id: KeyPath<Element, String>) {
        var last: [EntityID: Int] = [:]
        for (index, element) in elements.enumerated() {
            last[EntityID(element[keyPath: id])] = index
        }
        let indexes = last.values.sorted()
        (elements, bytes) = (indexes.map { elements[$0] }, indexes.map { bytes[$0] })
        self.indexes = indexes.map { self.indexes[$0] }
    }
}

extension StorableElements: Sendable where Element: Sendable {}

extension ListFault {
    /// The detail of an error with the element's location in the list in place of its path in the event.
    static func reason(
        _ error: EventError, _ path: String, in name: String, _ index: Int
    ) -> String {
        let location = "\(name)[\(index)]"
        return error.detail.hasPrefix(path)
            ? location + error.detail.dropFirst(path.count) : "\(location): \(error.detail)"
    }
}

extension StorableElements where Element: Sendable {
    /// The maximum bytes of a commit, unless one element has more.
    private static var commitBytes: Int { 1_048_576 }

    /// Records the elements in commits of about 1 MiB. Durable on return.
    ///
    /// - Parameter append: appends the event of an element.
    /// - Throws: `CancellationError` between two commits; `LogError` as `EventStore.append`.
    func record(
        in store: EventStore,
        _ append: @escaping @Sendable (Element, inout EventStore.Transaction) throws -> Void
    ) async throws {
        var start = 0
        while start < elements.count {
            if start > 0 { try Task.checkCancellation() }
            var (end, size) = (start, 0)
            while end < elements.count, end == start || size + bytes[end] <= Self.commitBytes {
                size += bytes[end]
                end += 1
            }
            let batch = elements[start..<end]
            try await store.write { transaction in
                for element in batch { try append(element, &transaction) }
            }
            start = end
        }
    }
}

extension JSONFields {
    /// The elements of a member that must be an array of objects, each read alone: one that is no object does not
    /// keep the others out.
    ///
    /// - Parameter nullIsMissing: as in `init(_:path:nullIsMissing:)`.
    /// - Throws: `EventError` if the member is missing or is no array.
    func objectsAlone(
        _ name: StaticString, nullIsMissing: Bool = false
    ) throws(EventError) -> [Result<JSONFields, EventError>] {
        let text = try required(raw(name), name)
        let path = "\(path).\(name)"
        guard let elements = JSONScanner.elements(of: text) else {
            throw EventError(.invalidData, "\(path) is not an array")
        }
        return elements.enumerated().map { index, range in
            Result { () throws(EventError) in
                try JSONFields(
                    Array(text[range]), path: "\(path)[\(index)]", nullIsMissing: nullIsMissing)
            }
        }
    }
}

extension JSONScanner {
    /// The elements of an array as ranges of its text; nil for another value.
    static func elements(of text: [UInt8]) -> [Range<Int>]? {
        let slice = text[...]
        let span = slice.span.bytes
        var ranges: [Range<Int>] = []
        do throws(JSONError) {
            var scanner = JSONScanner()
            try scanner.elements(span) { (scanner) throws(JSONError) in
                ranges.append(try scanner.value(span))
            }
        } catch { return nil }
        return ranges
    }
}

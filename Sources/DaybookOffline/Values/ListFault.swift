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

    /// Checks each element alone. The second element with an id is left out.
    ///
    /// - Parameters:
    ///   - all: the given elements.
    ///   - name: the member of the event that holds the list.
    ///   - id: the key of an element.
    ///   - event: the event that stores the list of one element.
    /// - Throws: `EventError` if no element of a list that is not empty can be stored: the stored list stays.
    init<Payload: EventPayload>(
        of all: [Element], _ name: String, id: KeyPath<Element, String>,
        event: (Element) -> Payload
    ) throws {
        var ids: Set<EntityID> = []
        var first: EventError?
        for (index, element) in all.enumerated() {
            do {
                _ = try EventDraft.checked(event(element))
                guard ids.insert(EntityID(element[keyPath: id])).inserted else {
                    throw EventError(
                        .invalidData, "data.\(name)[0]: \(element[keyPath: id]) occurs twice")
                }
                elements.append(element)
            } catch let error as EventError {
                first = first ?? error
                leftOut.append(
                    ListFault(
                        index: index, id: element[keyPath: id],
                        reason: error.detail.replacingOccurrences(
                            of: "data.\(name)[0]", with: "\(name)[\(index)]")))
            }
        }
        if elements.isEmpty, let first { throw first }
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

// The filter of the timeline, as the address of a request states it.

import EventSourcing
import Foundation

/// Conditions on events. An empty list of names accepts any.
struct EventFilter: Hashable {
    private(set) var types: [String] = []
    private(set) var subjects: [String] = []
    private(set) var lanes: [String] = []
    private(set) var sources: [String] = []
    private(set) var accounts: [String] = []
    private(set) var statuses: [EventStatus] = []
    /// The first and the last position.
    private(set) var from: UInt64 = 0
    private(set) var to = UInt64.max
    /// Milliseconds since 1970. `until` is not included.
    private(set) var since = Int64.min
    private(set) var until = Int64.max
    /// A part of the stored line, with ASCII letters in lower case; nil for any line.
    private(set) var text: [UInt8]?

    /// Parses the parameters of a request; others are ignored.
    ///
    /// - Throws: `APIError` `badRequest` for a value that is not valid.
    init(_ parameters: [(name: String, value: String)]) throws(APIError) {
        for (name, value) in parameters where !value.isEmpty {
            switch name {
            case "type": types.append(value)
            case "subject": subjects.append(value)
            case "lane": lanes.append(value)
            case "source": sources.append(value)
            case "account": accounts.append(value)
            case "status":
                guard let status = EventStatus(rawValue: value) else {
                    throw .badRequest("status must be one of \(EventStatus.list)")
                }
                statuses.append(status)
            case "from": from = try Self.position(value, name)
            case "to": to = try Self.position(value, name)
            case "since": since = try Self.time(value, name)
            case "until": until = try Self.time(value, name)
            case "text": text = value.utf8.map(\.lowercasedASCII)
            default: break
            }
        }
    }

    private static func position(_ value: String, _ name: String) throws(APIError) -> UInt64 {
        guard let position = UInt64(value) else {
            throw .badRequest("\(name) must be a position, such as 17")
        }
        return position
    }

    private static func time(_ value: String, _ name: String) throws(APIError) -> Int64 {
        guard let time = Timestamp(value) else {
            throw .badRequest("\(name) must be a time such as 2026-01-31T12:00:00.000Z")
        }
        return time.milliseconds
    }

    /// Finds the events that meet all conditions but the text.
    ///
    /// - Parameter status: the status of an event, by ordinal. Called only if the filter names one.
    /// - Returns: their ordinals, ascending; nil for all events.
    /// - Complexity: O(n).
    func ordinals(
        in index: EventIndex, from first: Int = 0, status: (Int) -> EventStatus
    ) -> [UInt32]? {
        let (types, subjects) = (numbers(types, index), numbers(subjects, index))
        let (lanes, sources) = (numbers(lanes, index), numbers(sources, index))
        let accounts = numbers(accounts, index)
        let isTimed = since != .min || until != .max
        let start = max(first, from == 0 ? 0 : index.ordinal(from: from))
        let end = to == .max ? index.count : index.ordinal(from: to + 1)
        guard
            types != nil || subjects != nil || lanes != nil || sources != nil || accounts != nil
                || isTimed || !statuses.isEmpty || start > 0 || end < index.count
        else { return nil }
        guard start < end else { return [] }
        var found: [UInt32] = []
        for ordinal in start..<end {
            if let types, !types.contains(index.types[ordinal]) { continue }
            if let subjects, !subjects.contains(index.subjects[ordinal]) { continue }
            if let lanes, !lanes.contains(index.lanes[ordinal]) { continue }
            if let sources, !sources.contains(index.sources[ordinal]) { continue }
            if let accounts, !accounts.contains(index.accounts[ordinal]) { continue }
            if isTimed, index.times[ordinal] < since || index.times[ordinal] >= until { continue }
            if !statuses.isEmpty, !statuses.contains(status(ordinal)) { continue }
            found.append(UInt32(ordinal))
        }
        return found
    }

    /// The numbers of names; nil if the list accepts any name.
    private func numbers(_ list: [String], _ index: EventIndex) -> [UInt32]? {
        list.isEmpty ? nil : list.compactMap { index.names.existingNumber(of: $0) }
    }
}

/// The state of an event, as the timeline shows it.
enum EventStatus: String, CaseIterable {
    case pending, parked, conflict, settled, retracted, received, local, unknown, record

    static let list = allCases.map(\.rawValue).joined(separator: ", ")
}

extension UInt8 {
    /// The byte with an upper case ASCII letter in lower case.
    var lowercasedASCII: UInt8 {
        self >= UInt8(ascii: "A") && self <= UInt8(ascii: "Z") ? self | 0x20 : self
    }
}

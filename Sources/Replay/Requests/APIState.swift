// The state of an entity as an app's own API has it, as an event, and the version by which two states are
// distinguished. Before PullSource. Spec/protocol/reading.md, READ-1.

import EventSourcing
import Foundation
import LogFormat

/// The state of one entity at an app's own API, as an event. The events of the type stay on the device.
///
/// The entity is the event's lane, or its subject without one: the lane of the events by which this device changes
/// the entity.
///
/// ```swift
/// struct PlaceState: APIState, Codable {
///     static let type = "com.example.place.state"
///     var place: String
///     var name: String
///     var tag: String
///     var isDeleted = false
///     var subject: String? { place }
///     var apiVersion: APIVersion { .tag(tag) }
/// }
/// ```
public protocol APIState: EventPayload {
    /// The version of the state.
    var apiVersion: APIVersion { get }
    /// True if the API has deleted the entity.
    var isDeleted: Bool { get }
}

extension APIState {
    /// False.
    public var isDeleted: Bool { false }
}

/// The version of an entity's state at the API.
public enum APIVersion: Hashable, Sendable {
    /// A text without an order, such as an ETag: the state that was read last counts.
    case tag(String)
    /// A number that grows with every change, or does not fall: of two states, one with a lesser number is older. Equal
    /// numbers do not show that the states are equal.
    case number(Int64)

    /// The largest size of a tag in bytes.
    static let tagBytesMax = 1_024

    /// The version of a time in RFC 3339, such as `updated_at`: the microseconds since 1970, smaller fractions cut off.
    ///
    /// - Throws: `EventError` (`invalidData`) for any other text.
    public static func timestamp(_ text: String) throws -> APIVersion {
        .number(try Microseconds(text).count)
    }

    /// The tag, or the number in decimal digits: the value of `If-Match` for an ETag.
    public var text: String {
        switch self {
        case .tag(let tag): tag
        case .number(let number): "\(number)"
        }
    }

    var number: Int64? { if case .number(let number) = self { number } else { nil } }
}

/// A time in microseconds since 1970, of which `Date` and `Timestamp` would lose digits.
struct Microseconds {
    let count: Int64

    init(_ count: Int64) { self.count = count }

    /// Reads a time in RFC 3339; a space may be in place of the `T`.
    init(_ text: String) throws(EventError) {
        var whole = text.replacing(" ", with: "T", maxReplacements: 1)
        var fraction: Int64 = 0
        if let point = whole.firstIndex(of: ".") {
            let digits = whole[whole.index(after: point)...].prefix { $0.isASCII && $0.isNumber }
            fraction =
                Int64(digits.prefix(6).padding(toLength: 6, withPad: "0", startingAt: 0)) ?? 0
            whole.removeSubrange(point..<digits.endIndex)
        }
        // PostgreSQL ends a time with `+00`.
        if let sign = whole.lastIndex(where: { "+-".contains($0) }),
            whole.distance(from: sign, to: whole.endIndex) == 3
        {
            whole += ":00"
        }
        guard let date = try? Date(whole, strategy: .iso8601) else {
            throw EventError(.invalidData, "the time is not in RFC 3339")
        }
        let seconds = date.timeIntervalSince1970.rounded()
        guard abs(seconds) < 1e12 else {
            throw EventError(.invalidData, "the time is not in RFC 3339")
        }
        count = Int64(seconds) * 1_000_000 + fraction
    }

    /// The time in RFC 3339, in UTC with six digits after the point.
    var text: String {
        let (seconds, fraction) = count.quotientAndRemainder(dividingBy: 1_000_000)
        let isBefore = fraction < 0
        let date = Date(timeIntervalSince1970: Double(isBefore ? seconds - 1 : seconds))
        let digits = "\(isBefore ? fraction + 1_000_000 : fraction)"
        let padding = String(repeating: "0", count: max(0, 6 - digits.count))
        return date.formatted(.iso8601).dropLast() + "." + padding + digits + "Z"
    }
}

/// What an event says of the state that it records: an extension of the event, so that the log's own events are the
/// record of versions.
struct StateMark: Hashable, Sendable {
    /// The number of the states of the entity that the log has recorded, with this one: a version that comes back is
    /// another event.
    var turn: UInt64 = 0
    /// XXH64 of version, data and `isDeleted`.
    var hash: UInt64
    var isDeleted: Bool
    /// True if the answer to an own change has taught the state.
    var isTaught = false
    /// True if only the version was recorded, and no event with the state.
    var isVersionOnly = false
    var version: APIVersion

    /// The name of the extension.
    static let attribute = "apistate"

    init(version: APIVersion, isDeleted: Bool, json: [UInt8]) {
        var text = Array(version.text.utf8)
        text += [0, isDeleted ? 1 : 0]
        text += json
        hash = XXH64.hash(text.span.bytes)
        self.version = version
        self.isDeleted = isDeleted
    }

    /// True if both are the same state.
    func isSameState(as other: StateMark) -> Bool {
        hash == other.hash && version == other.version && isDeleted == other.isDeleted
    }

    /// True if the state is older than another one.
    func isOlder(than other: StateMark) -> Bool {
        guard let number = version.number, let others = other.version.number else { return false }
        return number < others
    }

    /// Turn, hash, flags and version, each with a space after it.
    var text: String {
        let kind = version.number == nil ? "t" : "n"
        let flags = (isDeleted ? "d" : "") + (isTaught ? "a" : "") + (isVersionOnly ? "v" : "")
        return "\(turn) \(hash) -\(flags) \(kind)\(version.text)"
    }

    init?(text: String?) {
        let parts = text?.split(separator: " ", maxSplits: 3) ?? []
        guard parts.count == 4, let turn = UInt64(parts[0]), let hash = UInt64(parts[1]) else {
            return nil
        }
        self.turn = turn
        self.hash = hash
        isDeleted = parts[2].contains("d")
        isTaught = parts[2].contains("a")
        isVersionOnly = parts[2].contains("v")
        let version = String(parts[3].dropFirst())
        switch parts[3].first {
        case "t": self.version = .tag(version)
        case "n":
            guard let number = Int64(version) else { return nil }
            self.version = .number(number)
        default: return nil
        }
    }
}

extension EventDraft {
    /// The draft of a state that was read or taught, with its mark. Id and turn follow when it is recorded.
    ///
    /// - Throws: what the payload's encoder throws; `EventError` (`invalidData`) for an entity or a version without
    ///   bytes, or of too many.
    init(state: any APIState, version: APIVersion? = nil) throws {
        try self.init(state, id: Self.noBase)
        let version = version ?? state.apiVersion
        guard let entity = lane ?? subject, !entity.isEmpty else {
            throw EventError(.invalidData, "the state has no entity: neither lane nor subject")
        }
        guard 1...APIVersion.tagBytesMax ~= version.text.utf8.count,
            entity.utf8.count <= APIVersion.tagBytesMax
        else {
            throw EventError(
                .invalidData,
                "the version or the entity of the state has no bytes, or more than \(APIVersion.tagBytesMax)"
            )
        }
        lane = entity
        stateMark = StateMark(version: version, isDeleted: state.isDeleted, json: json ?? [])
    }

    /// What the event says of the state that it records; nil for any other event.
    var stateMark: StateMark? {
        get { string(StateMark.attribute).flatMap { StateMark(text: $0) } }
        set {
            extensions.removeAll { $0.name == StateMark.attribute }
            if let newValue {
                extensions.append(Extension(name: StateMark.attribute, string: newValue.text))
            }
        }
    }
}

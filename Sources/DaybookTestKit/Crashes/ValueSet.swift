// The events and the view of the crash search: a key gets a value. Small, never shipped, and with
// values that are replaced, so that compaction has something to do. Used by Workload.

import EventSourcing

/// A key got a value.
public struct ValueSet: EventPayload, Codable, Hashable {
    public static let type = "daybook-test.value.set"
    /// The key.
    public var key: String
    /// Its new value.
    public var value: String

    /// Creates the event's data.
    public init(key: String, value: String) {
        self.key = key
        self.value = value
    }

    public var subject: String? { key }
    public var lane: String? { "key:\(key)" }
}

/// The newest value of each key.
public struct Values: CompactableView, Codable, Hashable {
    public static let name = "values"
    public static let version = 1
    /// By key.
    public private(set) var registers: [String: Register<String>] = [:]

    public init() {}

    public mutating func fold(_ event: Event) {
        guard let set = payload(of: event) else { return }
        registers[set.key].set(set.value, event.stamp)
    }

    public func retention(of event: Event) -> Retention {
        guard let set = payload(of: event) else { return .unconcerned }
        return .of(event, heldBy: [registers[set.key]?.stamp])
    }

    private func payload(of event: Event) -> ValueSet? {
        guard event.type == ValueSet.type, let json = event.content.json else { return nil }
        return try? ValueSet(json: json)
    }
}

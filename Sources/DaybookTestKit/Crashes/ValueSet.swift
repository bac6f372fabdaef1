// The event type and the view of the workloads: an event sets the value of a key. The events are small and
// never shipped, and they replace values, so that compaction has events to remove.

import EventSourcing

/// The value of a key was set.
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
    /// The registers by key.
    public private(set) var registers: [String: Register<String>] = [:]

    public init() {}

    public mutating func fold(_ event: Event) {
        guard let set = payload(of: event) else { return }
        registers[set.key].set(set.value, event.lwwTimestamp)
    }

    public func retention(of event: Event) -> Retention {
        guard let set = payload(of: event) else { return .unconcerned }
        return .of(event, heldBy: [registers[set.key]?.lwwTimestamp])
    }

    private func payload(of event: Event) -> ValueSet? {
        guard event.type == ValueSet.type, let json = event.content.json else { return nil }
        return try? ValueSet(json: json)
    }
}

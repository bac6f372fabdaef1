// A place between two events of a pull. Travels through the client as an opaque text in the Link of
// every page. Spec/sync-protocol.md, SYNC-32.

/// A place between two events of an account.
package enum EventCursor: Hashable, Sendable {
    /// Behind an event in the server's order.
    case serial(Int64)
    /// Behind an event in the order of one source.
    case sequence(Int64, serial: Int64)

    /// The start of an order.
    package static func start(bySource: Bool) -> EventCursor {
        bySource ? .sequence(0, serial: 0) : .serial(0)
    }

    /// Whether it belongs to the order of a source.
    package var isBySource: Bool {
        if case .sequence = self { true } else { false }
    }

    /// The cursor as clients get it.
    package var text: String {
        switch self {
        case .serial(let serial): "a\(serial)"
        case .sequence(let sequence, let serial): "s\(sequence)-\(serial)"
        }
    }

    /// Reads a cursor that a client sends back.
    package init?(_ text: String) {
        guard let kind = text.first else { return nil }
        let numbers = text.dropFirst().split(separator: "-", omittingEmptySubsequences: false)
            .map { Int64($0) ?? -1 }
        guard numbers.allSatisfy({ $0 >= 0 }) else { return nil }
        switch (kind, numbers.count) {
        case ("a", 1): self = .serial(numbers[0])
        case ("s", 2): self = .sequence(numbers[0], serial: numbers[1])
        default: return nil
        }
    }
}

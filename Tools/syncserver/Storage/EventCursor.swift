// The cursor of a pull: where the next page begins. Clients get it as an opaque text in the Link of
// every page. Spec/protocol/sync-protocol.md, SYNC-32.

/// A cursor between two events of an account.
package enum EventCursor: Hashable, Sendable {
    /// After an event in the server's order.
    case serial(Int64)
    /// After an event in the order of one source.
    case sequence(Int64, serial: Int64)

    /// The start of an order.
    package static func start(bySource: Bool) -> EventCursor {
        bySource ? .sequence(0, serial: 0) : .serial(0)
    }

    /// Whether it belongs to the order of a source.
    package var isBySource: Bool {
        if case .sequence = self { true } else { false }
    }

    /// The cursor as the text that clients get.
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
            .map { Int64(digits: $0) }
        switch (kind, numbers.count, numbers.first ?? nil, numbers.last ?? nil) {
        case ("a", 1, let serial?, _): self = .serial(serial)
        case ("s", 2, let sequence?, let serial?): self = .sequence(sequence, serial: serial)
        default: return nil
        }
    }
}

extension FixedWidthInteger {
    /// Parses decimal digits; nil for any other character. Swift's own initializer also accepts a
    /// sign, and `+` is a space in a query.
    package init?(digits text: some StringProtocol) {
        guard !text.isEmpty, text.utf8.allSatisfy({ (0x30...0x39).contains($0) }),
            let number = Self(text)
        else { return nil }
        self = number
    }
}

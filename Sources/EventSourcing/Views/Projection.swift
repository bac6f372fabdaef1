// A view is a fold over the log. Its state can be stored in a checkpoint, so that opening a log folds only
// later events. Spec/model/views.md.

import Foundation

/// A view: a state that is computed only from the events of a log.
///
/// The value is the state. A reader gets a snapshot that never changes. Copying must be cheap, so states
/// use persistent collections (`TreeDictionary`) rather than large arrays. `fold` must be a pure function:
/// no clock, no randomness, no I/O. A store folds each view on one thread at a time, and may fold
/// different views in parallel.
///
/// To be stored in checkpoints, a view is `Codable`, or implements `encodedState()` and
/// `init(encodedState:)`. Otherwise it is folded from the first event at every opening.
public protocol Projection: Sendable {
    /// The view's name, stable across releases.
    static var name: String { get }
    /// The version, to be raised whenever the meaning of `fold` or of the state changes: stored states of
    /// another version are rebuilt.
    static var version: Int { get }
    /// True for a view that reads `Event.action` or `Event.isKnownType`. Its stored state depends on the
    /// rules under which it was folded, and is folded again when rules are added or removed.
    static var dependsOnRules: Bool { get }
    /// The types, in their newest form, of the events that the view folds; nil for all. A store passes no
    /// other events to `fold`. Naming the types saves time, and lets compaction remove the others.
    static var eventTypes: Set<String>? { get }
    /// True if the view's state does not change when events are removed that other views have superseded,
    /// as for a view that keeps only the newest values. While it is false, compaction keeps all events of
    /// `eventTypes`, so name them. Ignored for a `CompactableView`, which states which events it needs.
    static var allowsCompaction: Bool { get }
    /// Creates the state before the first event.
    init()
    /// Applies one event. Events of unknown types must be ignored.
    mutating func fold(_ event: Event)
    /// The state as bytes for a checkpoint, or nil for a view that is not stored. Equal states must
    /// give equal bytes: `logtool verify` compares them.
    func encodedState() throws -> [UInt8]?
    /// Reads what `encodedState()` of the same version wrote.
    ///
    /// - Throws: any error for invalid bytes; the view is then folded again.
    init(encodedState: [UInt8]) throws
}

extension Projection {
    /// False.
    public static var dependsOnRules: Bool { false }

    /// False: compaction keeps the events that the view folds.
    public static var allowsCompaction: Bool { false }

    /// Nil: the view folds all events.
    public static var eventTypes: Set<String>? { nil }

    /// True if the view folds events of a type.
    public static func folds(_ type: String) -> Bool { eventTypes?.contains(type) ?? true }

    /// Nil: the view is not stored.
    public func encodedState() throws -> [UInt8]? { nil }

    /// Throws: the view is not stored.
    public init(encodedState: [UInt8]) throws {
        throw EventError(.invalidData, "states of the view \(Self.name) are not stored")
    }
}

extension Projection {
    /// Folds events in their newest form, and skips those of types that the view does not fold.
    package mutating func fold(_ events: some Sequence<Event>, by catalogue: EventCatalogue) {
        for event in events {
            let event = catalogue.newestForm(of: event)
            if Self.folds(event.type) { fold(event) }
        }
    }
}

extension Projection where Self: Codable {
    /// The state in a binary form: members by name, the elements of dictionaries and sets sorted by their
    /// bytes (`Spec/model/views.md`, VIEW-29). O(n log n).
    public func encodedState() throws -> [UInt8]? { try StateEncoder.bytes(of: self) }

    /// Decodes the binary form.
    ///
    /// - Complexity: O(n) insertions.
    public init(encodedState: [UInt8]) throws {
        self = try StateDecoder.state(Self.self, encodedState)
    }
}

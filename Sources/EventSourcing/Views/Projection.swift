// A view is a fold over the log: a value that takes in one event after the other. Its state can be
// stored in a checkpoint, so that opening a log reads only what came later. Spec/model/views.md.

import Foundation

/// A state that follows from the events of a log alone.
///
/// The value is the state. Reading it anywhere gives a snapshot that never changes; copying must be
/// cheap, so states hold persistent collections (`TreeDictionary`) rather than arrays of everything.
/// `fold` must be a pure function: no clock, no randomness, no I/O. A store folds each view on one
/// thread at a time, different views perhaps at the same time.
///
/// A view whose state is to be stored encodes it: either it is `Codable`, or it implements
/// `encodedState()` and `init(encodedState:)` by hand. A view that does neither is folded from the
/// log's beginning at every opening.
public protocol Projection: Sendable {
    /// The view's name, stable across releases.
    static var name: String { get }
    /// Raised whenever `fold` or the state changes its meaning, so that stored states are rebuilt.
    static var version: Int { get }
    /// True for a view that reads `Event.action` or `Event.isKnownType`: what it made of an event
    /// then depends on the rules of its day, so a stored state is folded anew when rules come or go.
    static var dependsOnRules: Bool { get }
    /// The types, in their newest form, of the events that `fold` takes in; nil for all. A store hands
    /// on no others, so what the view does with them would be lost. Naming the types
    /// saves time, and lets compaction take out the others.
    static var eventTypes: Set<String>? { get }
    /// True for a view that does without superseded events: without those that other views say were
    /// replaced it comes to the same, as one does that keeps the newest values only. While it is
    /// false, compaction keeps all events of `eventTypes`, so name them. A `CompactableView` says
    /// itself which events it needs, and is not asked.
    static var allowsCompaction: Bool { get }
    /// The state before the first event.
    init()
    /// Takes in one event. Events of types that the view does not know must be ignored.
    mutating func fold(_ event: Event)
    /// The state as bytes for a checkpoint, or nil for a view that is not stored. Equal states must
    /// give equal bytes: `logtool verify` compares them.
    func encodedState() throws -> [UInt8]?
    /// Reads what `encodedState()` of the same version wrote.
    ///
    /// - Throws: anything for bytes that are no such state; the view is then folded anew.
    init(encodedState: [UInt8]) throws
}

extension Projection {
    /// False.
    public static var dependsOnRules: Bool { false }

    /// False: compaction keeps the events that the view takes in.
    public static var allowsCompaction: Bool { false }

    /// Nil: the view takes in all events.
    public static var eventTypes: Set<String>? { nil }

    /// Whether events of a type concern the view at all.
    public static func folds(_ type: String) -> Bool { eventTypes?.contains(type) ?? true }

    /// Nil: the view is not stored.
    public func encodedState() throws -> [UInt8]? { nil }

    /// Refuses: the view is not stored.
    public init(encodedState: [UInt8]) throws {
        throw EventError(.invalidData, "states of the view \(Self.name) are not stored")
    }
}

extension Projection {
    /// Folds events in their newest form, passing over those of types that the view does not take in.
    package mutating func fold(_ events: some Sequence<Event>, by catalogue: EventCatalogue) {
        for event in events {
            let event = catalogue.newestForm(of: event)
            if Self.folds(event.type) { fold(event) }
        }
    }
}

extension Projection where Self: Codable {
    /// The state in a binary form: members by their names, the elements of dictionaries and sets sorted by
    /// their bytes (`Spec/model/views.md`, VIEW-29). O(n log n).
    public func encodedState() throws -> [UInt8]? { try StateEncoder.bytes(of: self) }

    /// Reads the binary form.
    ///
    /// - Complexity: O(n) insertions.
    public init(encodedState: [UInt8]) throws {
        self = try StateDecoder.state(Self.self, encodedState)
    }
}

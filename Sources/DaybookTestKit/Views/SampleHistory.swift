// Events as a log has them, made without a log, so that a test of a view needs no store. Spec/model/views.md.

import Daybook
import EventSourcing
import Foundation
import LogFormat

/// The events of a phone's log: its own and those of other devices of the account.
///
/// ```swift
/// var history = try SampleHistory(upcasters: upcasters)
/// try history.record(TripPlanned(trip: "spring", stop: "lake"))
/// try history.record(TripNamed(trip: "spring", name: "North"), on: .tablet)
/// #expect(history.view(Trips.self).names == ["spring": "North"])
/// ```
///
/// Nothing is random: equal calls make equal events.
public struct SampleHistory: Sendable {
    /// A device of the account.
    public enum Device: Int, CaseIterable, Sendable {
        /// The device whose log the history is.
        case phone = 1
        /// Another device of the account.
        case tablet
        /// A third one.
        case laptop

        /// The source of the device's events. Of two events with the same time, that of the later case wins.
        public var source: UUID { UUID(integer: UInt128(rawValue)) }

        /// The device that made an event of a sample history.
        init(of event: Event) { self = Self.allCases.first { $0.source == event.source } ?? .phone }
    }

    /// The events as they were recorded, in order of position.
    public private(set) var events: [Event] = []
    /// The catalogue of event types.
    public let catalogue: EventCatalogue
    private var sequences: [Device: UInt64] = [:]

    /// Creates a history without events.
    ///
    /// - Parameters:
    ///   - rules: the rules of the app's event types.
    ///   - upcasters: the conversions of older event types to their successors.
    ///   - catalogue: the event types of a library, to which those of the app are added.
    /// - Throws: `EventError` (`refused`) for rules and upcasters that `EventStore.open` refuses.
    public init(
        rules: [EventRule] = [], upcasters: [Upcaster] = [],
        extending catalogue: EventCatalogue = .ownTypes
    ) throws {
        self.catalogue = catalogue.adding(rules, upcasters: upcasters)
        if let fault = self.catalogue.fault { throw fault }
    }

    /// Records an event, as a store does that knows the rules.
    ///
    /// - Parameters:
    ///   - payload: the event's data.
    ///   - device: the device that makes the event.
    ///   - time: the time of the event; nil is one second after the last event of the history.
    /// - Returns: the event.
    /// - Throws: `EventError` (`invalidData`) for data that the rule of their type refuses; an error of the
    ///   payload's encoder.
    @discardableResult
    public mutating func record(
        _ payload: some EventPayload, on device: Device = .phone, time: Timestamp? = nil
    ) throws -> Event {
        var draft = try EventDraft(payload, id: nextID, time: time)
        try catalogue.normalise(&draft)
        return record(draft, on: device)
    }

    /// Records an event that may break the rule of its type, as an older release or another device may have
    /// recorded it.
    ///
    /// - Parameters:
    ///   - draft: the event. Without a time it gets the time one second after the last event of the history.
    ///   - device: the device that makes the event.
    /// - Returns: the event.
    @discardableResult
    public mutating func record(_ draft: EventDraft, on device: Device = .phone) -> Event {
        var draft = draft.inLineForm
        try? catalogue.normalise(&draft)
        draft.lane = catalogue.lane(of: draft)
        draft.time = draft.time ?? nextTime
        let prefix = nextPrefix(draft.id, device)
        var line: [UInt8] = []
        LineEncoder.append(draft, prefix, to: &line)
        let event = Event(
            prefix, content: draft, catalogue: catalogue, lineBytes: line.count - 1)
        events.append(event)
        return event
    }

    /// The state of a view after all events, folded as a store folds them: only the events of the view's
    /// types, each converted to its newest type.
    public func view<View: Projection>(_ view: View.Type) -> View {
        View(folding: events, by: catalogue)
    }

    /// The id of the next event; equal histories have equal ids.
    var nextID: UUID { UUID(integer: UInt128(events.count + 1)) }

    private var nextTime: Timestamp {
        Timestamp(milliseconds: (events.last?.time.milliseconds ?? 0) + 1_000)
    }

    private mutating func nextPrefix(_ id: UUID, _ device: Device) -> LinePrefix {
        let position = Position(UInt64(events.count + 1))
        let source = device.source.integer
        if device == .phone { return LinePrefix(own: id.integer, source: source, at: position) }
        sequences[device, default: 0] += 1
        return LinePrefix(
            id: id.integer, source: source, sequence: sequences[device, default: 0],
            position: position)
    }

    /// A description of each event: position, device, time, type, subject and data.
    var lines: [String] {
        events.map { event in
            let subject = event.subject.map { " of \($0)" } ?? ""
            let data = String(decoding: event.content.json ?? [], as: UTF8.self)
            return
                "\(event.position). \(Device(of: event)) at \(event.time): \(event.type)\(subject) "
                + data
        }
    }
}

extension Projection {
    /// Creates the state that follows from events, folded as a store folds them.
    init(folding events: some Sequence<Event>, by catalogue: EventCatalogue) {
        self.init()
        fold(events, by: catalogue)
    }
}

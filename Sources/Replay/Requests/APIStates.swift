// The record of the states that were read: for each entity the last one. It is a view, so it follows from the log's
// own events, through a crash, a compaction and a backup. After APIState, before StateRecords.
// Spec/protocol/reading.md, READ-3.

import EventSourcing
import LogFormat

/// The last state of each entity that the log has recorded from an app's own API.
package struct APIStates: CompactableView, Codable {
    package static let name = "daybook-api-states"
    package static let version = 1
    package static let dependsOnRules = true

    /// The last state of an entity.
    struct Seen: Codable, Hashable, Sendable {
        /// `StateMark.text`.
        var text: String
        var position: UInt64
        var time: LWWTimestamp

        var mark: StateMark? { StateMark(text: text) }
    }

    /// By type and entity.
    private(set) var seen: StateDictionary<String, Seen> = [:]
    /// The lanes in which the log has changes of its own or states.
    private var lanes: StateDictionary<String, Lane> = [:]

    /// What the log has in a lane.
    struct Lane: Codable, Hashable, Sendable {
        /// The newest LWW timestamp of an event.
        var newest: LWWTimestamp
        /// The position of the last own change; 0 without one.
        var change: UInt64 = 0
    }

    package init() {}

    /// The key of an entity of a type. Bytes as characters: strings are equal by canonical equivalence, ids by bytes.
    static func key(_ type: String, _ entity: String) -> String { text(of: "\(type)\0\(entity)") }

    private static func text(of name: String) -> String {
        String(String.UnicodeScalarView(name.utf8.map { Unicode.Scalar($0) }))
    }

    /// The entities of a type that are not deleted, with their last states. O(states).
    func entities(of type: String) -> [(entity: String, seen: Seen)] {
        let prefix = Self.key(type, "")
        return seen.compactMap { key, seen in
            guard key.hasPrefix(prefix), seen.mark?.isDeleted == false else { return nil }
            let bytes = key.unicodeScalars.dropFirst(prefix.unicodeScalars.count)
            return (
                String(decoding: bytes.map { UInt8(truncatingIfNeeded: $0.value) }, as: UTF8.self),
                seen
            )
        }
    }

    /// What the log has in a lane; nil for nothing.
    func lane(_ lane: String) -> Lane? { lanes[Self.text(of: lane)] }

    /// The last state of an entity.
    func mark(_ type: String, _ entity: String) -> StateMark? { seen[Self.key(type, entity)]?.mark }

    /// True if the log has an own change of an entity after its last state, or only the version of that: the views may
    /// show something else.
    func isChanged(_ type: String, _ entity: String) -> Bool {
        guard let seen = seen[Self.key(type, entity)] else { return true }
        return lane(entity)?.change ?? 0 > seen.position || seen.mark?.isVersionOnly ?? true
    }

    package mutating func fold(_ event: Event) {
        if event.type == SyncPulled.type {
            for taught in (try? SyncPulled(json: event.content.json ?? []))?.taught ?? [] {
                set(taught.type, taught.entity, taught.mark, event)
            }
            return
        }
        let mark = event.content.stateMark
        if let mark { set(event.type, event.lane, mark.text, event) }
        guard mark != nil || event.action != nil else { return }
        let name = Self.text(of: event.lane)
        var lane = lanes[name] ?? Lane(newest: event.lwwTimestamp)
        lane.newest = max(lane.newest, event.lwwTimestamp)
        if mark == nil { lane.change = event.position.rawValue }
        lanes[name] = lane
    }

    private mutating func set(_ type: String, _ entity: String, _ text: String, _ event: Event) {
        seen[Self.key(type, entity)] = Seen(
            text: text, position: event.position.rawValue, time: event.lwwTimestamp)
    }

    /// An entity's last state is needed, and the newest event of a lane. O(log n).
    package func retention(of event: Event) -> Retention {
        if event.type == SyncPulled.type {
            let taught = (try? SyncPulled(json: event.content.json ?? []))?.taught ?? []
            let isCurrent = taught.contains { isLast($0.type, $0.entity, event) }
            return isCurrent ? .needed(.current) : .unconcerned
        }
        let mark = event.content.stateMark
        guard mark != nil || event.action != nil else { return .unconcerned }
        let lane = lane(event.lane)
        if lane?.newest == event.lwwTimestamp || lane?.change == event.position.rawValue {
            return .needed(.current)
        }
        guard let mark, let last = seen[Self.key(event.type, event.lane)] else {
            return mark == nil ? .unconcerned : .needed(.current)
        }
        guard last.position != event.position.rawValue else {
            return .needed(mark.isDeleted ? .deletion : .current)
        }
        return .superseded(by: [last.time])
    }

    private func isLast(_ type: String, _ entity: String, _ event: Event) -> Bool {
        seen[Self.key(type, entity)]?.position == event.position.rawValue
    }
}

extension RequestContext {
    /// The version of the state that the log has of an entity: the last one that was read, or that the answer to an
    /// earlier change has taught. For `If-Match`. O(log n).
    ///
    /// - Parameters:
    ///   - state: the type of the state.
    ///   - entity: the entity; nil for that of the event.
    /// - Returns: nil if the log has no state of it, or the API has deleted it.
    public func version<State: APIState>(
        of state: State.Type, entity: String? = nil
    ) -> APIVersion? {
        let mark = view(APIStates.self).mark(State.type, entity ?? event.lane)
        return mark?.isDeleted == false ? mark?.version : nil
    }
}

extension EventCatalogue {
    /// The views that the types need beside those of the app: the record of states, if one of the types is a state.
    package var viewsOfStates: [any Projection.Type] {
        types.contains { self[$0]?.payload is any APIState.Type } ? [APIStates.self] : []
    }
}

// The entities of a declared view by id, each with its registers; a deletion is final.
// Spec/model/views.md, VIEW-31.

import HashTreeCollections

/// The entities of a view by id. Copies share their entries.
public struct EntityTable<Entity: StateObject>: StateValue {
    @usableFromInline enum Slot: Sendable {
        case entity(Entity)
        /// Final: the least LWW timestamp of all deletions.
        case deleted(LWWTimestamp)

        @inlinable var entity: Entity? {
            if case .entity(let entity) = self { entity } else { nil }
        }
    }

    @usableFromInline var slots: TreeDictionary<EntityID, Slot> = [:]

    /// An entity before and after a change.
    public struct Replaced {
        /// The entity's id.
        public let id: EntityID
        /// The entity before the change; nil if there was none.
        public let old: Entity?
        /// The entity after the change; nil if it was deleted.
        public let new: Entity?

        @inlinable init(id: EntityID, old: Entity?, new: Entity?) {
            (self.id, self.old, self.new) = (id, old, new)
        }
    }

    /// Creates an empty table.
    @inlinable public init() {}

    /// The number of entities, deleted ones included. O(1).
    @inlinable public var count: Int { slots.count }

    /// An entity; nil if no event has changed it, or if it was deleted. O(1).
    @inlinable public subscript(id: EntityID) -> Entity? { slots[id]?.entity }

    /// An entity; nil if no event has changed it, or if it was deleted. O(1).
    @inlinable public subscript(id: String) -> Entity? { self[EntityID(id)] }

    /// True if an entity was deleted. O(1).
    @inlinable public func isDeleted(_ id: String) -> Bool {
        if case .deleted = slots[EntityID(id)] { true } else { false }
    }

    /// The entities that were not deleted, in no particular order.
    @inlinable public var entities: some Sequence<(id: EntityID, entity: Entity)> {
        slots.lazy.compactMap { id, slot in slot.entity.map { (id, $0) } }
    }

    /// The ids of the entities that were not deleted and have a property, in no particular order. O(n).
    @inlinable public func ids(where isIncluded: (Entity) -> Bool = { _ in true }) -> [EntityID] {
        slots.compactMap { id, slot in (slot.entity.map(isIncluded) ?? false) ? id : nil }
    }

    /// Changes an entity unless it was deleted. O(1), and the change.
    @inlinable public mutating func update(
        _ id: String, _ change: inout ViewChange, _ body: (inout Entity, inout ViewChange) -> Void
    ) {
        let id = EntityID(id)
        guard change.isFolding else { return list(id, &change, body) }
        let isVoid = slots[id, default: .entity(Entity())].update { body(&$0, &change) }
        if isVoid { slots[id] = nil }
    }

    /// Deletes an entity for ever: the entity before. O(1).
    @inlinable @discardableResult public mutating func delete(
        _ id: String, _ change: inout ViewChange
    ) -> Replaced? {
        let id = EntityID(id)
        guard change.isFolding else {
            change.keys.append(id)
            change.reason = .deletion
            return nil
        }
        var first = change.lwwTimestamp
        let slot = slots[id]
        if case .deleted(let other) = slot { first = Swift.min(first, other) }
        slots[id] = .deleted(first)
        return Replaced(id: id, old: slot?.entity, new: nil)
    }

    /// Lists the registers that a change would set.
    @inlinable func list(
        _ id: EntityID, _ change: inout ViewChange,
        _ body: (inout Entity, inout ViewChange) -> Void
    ) {
        change.keys.append(id)
        switch slots[id] {
        case .deleted(let first): change.winners.append(first)
        case .entity(var entity): body(&entity, &change)
        case nil:
            var entity = Entity()
            body(&entity, &change)
        }
    }

    // MARK: Stored state

    @inlinable public func write(to state: inout StateWriter) throws(EventError) {
        var entries = state.entries(count: slots.count)
        for (id, slot) in slots {
            state.begin(id, of: &entries)
            switch slot {
            case .deleted(let first):
                state.write(false)
                state.write(first)
            case .entity(let entity):
                state.write(true)
                try entity.write(to: &state)
            }
        }
        state.end(entries)
    }

    @inlinable public init(from state: inout StateReader) throws(EventError) {
        var read: TreeDictionary<EntityID, Slot> = [:]
        try state.entries { (state, id) throws(EventError) in
            guard try state.bool() else {
                read[id] = .deleted(try state.lwwTimestamp())
                return
            }
            let entity = try Entity(from: &state)
            guard !entity.isVoid else { throw state.fault("an entity has set nothing") }
            read[id] = .entity(entity)
        }
        slots = read
    }
}

extension EntityTable.Slot {
    /// Changes the entity in place, if it was not deleted.
    ///
    /// - Returns: true if no event has set any part of it.
    @inlinable mutating func update(_ body: (inout Entity) -> Void) -> Bool {
        guard case .entity(var entity) = self else { return false }
        // The entity's collections are copied if the slot still refers to them.
        self = .deleted(.least)
        body(&entity)
        let isVoid = entity.isVoid
        self = .entity(entity)
        return isVoid
    }
}

extension LWWTimestamp {
    /// Less than that of every event.
    public static let least = LWWTimestamp(
        time: Timestamp(milliseconds: .min), source: 0, sequence: 0)
    /// Greater than that of every event.
    public static let greatest = LWWTimestamp(
        time: Timestamp(milliseconds: .max), source: .max, sequence: .max)
}

/// An object of a state in one allocation, so that a table's nodes and the elements of an index are small.
public struct Boxed<Value: StateObject>: StateObject {
    @usableFromInline final class Box: Sendable {
        @usableFromInline let value: Value
        @inlinable init(_ value: Value) { self.value = value }
    }

    @usableFromInline var box: Box

    /// Creates the object before the first event.
    @inlinable public init() { self.init(Value()) }

    @inlinable init(_ value: Value) { box = Box(value) }

    /// The object. Setting it allocates.
    @inlinable public var value: Value {
        get { box.value }
        set { box = Box(newValue) }
    }

    /// True if both are the same allocation, and therefore equal.
    @inlinable public func isIdentical(to other: Self) -> Bool { box === other.box }

    @inlinable public mutating func visitState(
        _ state: inout some StateVisitor
    ) throws(EventError) {
        var copy = value
        try copy.visitState(&state)
        value = copy
    }

    @inlinable public func write(to state: inout StateWriter) throws(EventError) {
        try value.write(to: &state)
    }

    @inlinable public init(from state: inout StateReader) throws(EventError) {
        self.init(try Value(from: &state))
    }

    @inlinable public var isVoid: Bool { value.isVoid }
}

extension EntityTable {
    /// Changes an entity unless it was deleted. O(1), and the change.
    ///
    /// - Returns: the entity before and after the change, for the view's indexes; nil if nothing has changed.
    @inlinable public mutating func update<Value: StateObject>(
        _ id: String, _ change: inout ViewChange, _ body: (inout Value, inout ViewChange) -> Void
    ) -> Replaced? where Entity == Boxed<Value> {
        let id = EntityID(id)
        guard change.isFolding else {
            list(id, &change) { body(&$0.value, &$1) }
            return nil
        }
        let slot = slots[id]
        if case .deleted = slot { return nil }
        var value = slot?.entity?.value ?? Value()
        body(&value, &change)
        // An event that was too old to set a register leaves no entity: a reader of the state refuses a void one.
        guard !value.isVoid else {
            slots[id] = nil
            return Replaced(id: id, old: slot?.entity, new: nil)
        }
        let new = Boxed(value)
        slots[id] = .entity(new)
        return Replaced(id: id, old: slot?.entity, new: new)
    }
}

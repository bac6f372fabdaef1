// Finds the event that undoes or redoes another: reads which changes are undone by now, and folds views without them.
// Between EventStore+Undo and the log. Spec/model/undo.md.

import Foundation
import LogFormat
import LogStorage

/// A log at one position, to compute a compensating event.
struct Compensation: Sendable {
    let log: Log
    let catalogue: EventCatalogue
    /// The views at `through`.
    let views: ViewSet
    let states: [StoredState]
    /// The last position of the log.
    let through: Position
    let isRedo: Bool

    /// A change, and what undoes and redoes it and others.
    private struct Change {
        let event: Event
        /// The event itself, or the last one that has undone or redone it.
        var last: Event
        var isUndone = false
        /// The events that undo and redo changes, and all other changes that are undone.
        var passedOver: [Position] = []
    }

    /// The draft of the event that undoes or redoes an event, and the LWW timestamp that it must exceed.
    ///
    /// - Throws: `UndoError`; `LogError` if the log cannot be read; what the app's inverse throws.
    func draft(for id: UUID) throws -> (draft: EventDraft, replacing: LWWTimestamp) {
        let change = try change(of: try ownEvent(id))
        guard change.isUndone == isRedo else {
            throw isRedo
                ? failure(change.event, .notUndone, "is not undone")
                : failure(change.event, .alreadyUndone, "is undone already")
        }
        var draft = isRedo ? try repetition(of: change) : try inverse(of: change)
        draft.undoneID = change.last.id
        if change.event.content.baseID != nil { draft.baseID = change.last.id }
        let replaced = try replaced(by: draft, change)
        // The time of what it replaces: a newer change of another device wins, also one that arrives later.
        draft.time = replaced.time
        return (draft, replaced)
    }

    private func failure(
        _ event: Event, _ code: UndoError.Code, _ predicate: String
    ) -> UndoError {
        UndoError(code, "the event \(event.id.text) (\(event.type)) \(predicate)")
    }

    // MARK: The change

    private func ownEvent(_ id: UUID) throws -> Event {
        guard let line = try log.line(id: id.integer) else {
            guard try log.removed(id: id.integer) == nil else {
                throw UndoError(.compacted, "compaction has removed the event \(id.text)")
            }
            throw UndoError(.unknownEvent, "the log has no event \(id.text)")
        }
        let event = catalogue.newestForm(
            of: try LogReader.event(line.bytes.span.bytes, catalogue, directory: log.directory))
        guard event.isOwn else {
            throw failure(
                event, .notOwn, "was recorded by another device, which alone can undo it")
        }
        guard !event.isRecord, event.content.undoneID == nil else {
            throw failure(
                event, .noInverse, "is no change of the app; undo or redo the change itself")
        }
        guard !views.discarded.contains(event.position) else {
            throw failure(
                event, .retracted, "was discarded, or replaced when a conflict was decided")
        }
        // All that the state at the compacted position needs is there, so the values before this event are, too.
        guard event.position > (try log.compactedThrough()) else {
            throw failure(
                event, .compacted,
                "cannot be undone: the log was compacted since, and may lack the earlier values")
        }
        return event
    }

    /// Reads which changes are undone, from an event on. One that was undone before it counts as recorded: the event
    /// that undid it has set what was there.
    private func change(of event: Event) throws -> Change {
        var roots: [UUID: UUID] = [:]
        var compensations: [UUID: [Event]] = [:]
        let discarded = views.discarded
        try log.forEachEvent(from: event.position.next, catalogue: catalogue) { event in
            guard event.position <= through else { return false }
            guard event.isOwn, let undone = event.content.undoneID,
                !discarded.contains(event.position)
            else { return true }
            let root = roots[undone] ?? undone
            roots[event.id] = root
            compensations[root, default: []].append(event)
            return true
        }
        var change = Change(event: event, last: event)
        for (root, events) in compensations {
            change.passedOver += events.map(\.position)
            let isUndone = events.count % 2 == 1
            if root == event.id {
                (change.last, change.isUndone) = (events.last ?? event, isUndone)
            } else if isUndone, let position = try log.line(id: root.integer)?.position {
                change.passedOver.append(position)
            }
        }
        return change
    }

    /// Views in which the change counts and no undone one does, or without the change as well.
    private func views(
        _ types: [any Projection.Type], _ change: Change, without isWithout: Bool = false
    ) throws -> ViewSet {
        let passedOver = change.passedOver + (isWithout ? [change.event.position] : [])
        guard let first = passedOver.min() else { return views }
        var discarded = views.discarded
        discarded.insert(passedOver)
        let past = ViewSet(types, catalogue, passingOver: discarded)
        past.restore(states.filter { $0.position < first })
        try log.runs(from: past.next, through: through, catalogue: catalogue).forEach {
            past.fold($0[...])
        }
        return past
    }

    // MARK: The content

    private func inverse(of change: Change) throws -> EventDraft {
        let event = change.event
        guard let undoing = catalogue[event.type]?.undoing as? Undoing else {
            guard let view = registerView(of: event.type) else {
                throw failure(
                    event, .noInverse,
                    "cannot be undone: its type declares no inverse (EventRule.undoable), and none "
                        + "follows from the registers of a view")
            }
            return try draft(
                of: change, view, before: try views([view], change, without: true))
        }
        if let refusal = undoing.refusal {
            throw failure(event, .noInverse, "cannot be undone: \(refusal)")
        }
        let before = try undoing.view.map { try views([$0], change, without: true) } ?? views
        guard let payload = try undoing.inverse(event, before) else {
            throw failure(
                event, .noInverse,
                "cannot be undone: it changed nothing, or there was nothing before it")
        }
        return try EventDraft(payload)
    }

    private func repetition(of change: Change) throws -> EventDraft {
        guard catalogue[change.event.type]?.undoing == nil,
            let view = registerView(of: change.event.type)
        else { return copy(of: change.event, change.event.content.data) }
        return try draft(of: change, view, before: nil)
    }

    private func draft(
        of change: Change, _ view: any RegisterView.Type, before: ViewSet?
    ) throws -> EventDraft {
        let data = try view.compensatingData(
            of: change.event, before: before, now: try views([view], change))
        guard let data else { throw superseded(change.event) }
        return copy(of: change.event, .json(data))
    }

    private func copy(of event: Event, _ data: EventDraft.Payload) -> EventDraft {
        var draft = event.content
        draft.id = UUID()
        draft.data = data
        draft.causeID = nil
        return draft
    }

    /// The only register view of a type; nil if there is none, or several.
    private func registerView(of type: String) -> (any RegisterView.Type)? {
        let found = views.types.compactMap { $0 as? any RegisterView.Type }
            .filter { $0.eventTypes?.contains(type) ?? false }
        return found.count == 1 ? found[0] : nil
    }

    // MARK: Newer changes

    private func superseded(_ event: Event) -> UndoError {
        failure(
            event, .superseded,
            "cannot be \(isRedo ? "redone" : "undone"): a newer change has replaced what it set")
    }

    /// The greatest LWW timestamp that the draft must exceed: of the events that have undone or redone this change and
    /// older ones.
    ///
    /// - Throws: `UndoError` (`superseded`) if the draft would set what a change holds that is not undone, other than
    ///   this one; `EventError` for a draft that violates the rule of its type.
    private func replaced(by draft: EventDraft, _ change: Change) throws -> LWWTimestamp {
        var content = draft
        try catalogue.normalise(&content)
        content.time = change.event.time
        let draft = change.event.with(content, by: catalogue)
        let types = views.types.filter { $0 is any CompactableView.Type && $0.folds(draft.type) }
        let own = change.event.lwwTimestamp
        guard try views(types, change).holders(of: draft, in: types).allSatisfy({ $0 == own })
        else { throw superseded(change.event) }
        return max(change.last.lwwTimestamp, views.holders(of: draft, in: types).max() ?? own)
    }
}

extension ViewSet {
    /// The LWW timestamps of the registers that an event would set, as far as the views know them.
    fileprivate func holders(
        of event: Event, in types: [any Projection.Type]
    ) -> [LWWTimestamp] {
        projections.filter { projection in types.contains { $0 == type(of: projection) } }
            .flatMap { ($0 as? any CompactableView)?.holders(of: event) ?? [] }.compactMap(\.self)
    }
}

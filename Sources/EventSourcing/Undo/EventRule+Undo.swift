// How the events of a type are undone: declared beside the rule of the type. Spec/model/undo.md, UNDO-2.

/// How the events of a type are undone.
struct Undoing: Sendable {
    /// The view that the inverse reads; nil for none.
    let view: (any Projection.Type)?
    /// The event that undoes an event; nil if this event has none. The set has the view.
    let inverse: @Sendable (Event, ViewSet) throws -> (any EventPayload)?
    /// Why events of the type cannot be undone.
    var refusal: String?
}

extension EventRule {
    /// This rule, with the event that undoes one of its type.
    ///
    /// ```swift
    /// .of(GoalSet.self, action: "SET_GOAL").undoable { (set: GoalSet, before: Goals) in
    ///     before.goals[set.habit].map { GoalSet(habit: set.habit, minutes: $0.value.minutes) }
    /// }
    /// ```
    ///
    /// - Parameter inverse: returns the event that sets the values that the view has without the event; nil if there
    ///   is none. It must set no other values than the event. Pure; called on another thread.
    public func undoable<Payload: EventPayload, View: Projection, Inverse: EventPayload>(
        by inverse: @escaping @Sendable (_ payload: Payload, _ before: View) throws -> Inverse?
    ) -> EventRule {
        setting(
            Undoing(view: View.self) { event, views in
                try inverse(try event.payload(as: Payload.self), views.snapshot(View.self))
            })
    }

    /// This rule, with the event that undoes one of its type, for a sum: minus 20 minutes undo 20 minutes.
    ///
    /// - Parameter inverse: returns the event that cancels the effect of the event; nil if there is none. Pure.
    public func undoable<Payload: EventPayload, Inverse: EventPayload>(
        by inverse: @escaping @Sendable (_ payload: Payload) throws -> Inverse?
    ) -> EventRule {
        setting(
            Undoing(view: nil) { event, _ in try inverse(try event.payload(as: Payload.self)) })
    }

    /// This rule, whose events cannot be undone.
    ///
    /// - Parameter reason: why, for the user: `a completed lesson stays completed`.
    public func notUndoable(because reason: String) -> EventRule {
        setting(Undoing(view: nil, inverse: { _, _ in nil }, refusal: reason))
    }

    private func setting(_ undoing: Undoing) -> EventRule {
        var rule = self
        rule.undoing = undoing
        return rule
    }
}

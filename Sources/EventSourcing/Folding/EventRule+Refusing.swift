// The refusal of new events that a view shows to be without effect.

extension EventRule {
    /// This rule, which also refuses a new event that would be without effect, such as a change of a deleted
    /// entity (`EventError`, `refused`). Events of other devices and imported ones are recorded all the same,
    /// and so is every event if the store was opened without the view.
    ///
    /// - Parameters:
    ///   - view: the view that shows the entity.
    ///   - reason: returns the reason for the refusal, or nil. Called on the store's queue for each new event
    ///     of the type.
    public func refusing<View: Projection>(
        by view: View.Type, _ reason: @escaping @Sendable (EventDraft, View) -> String?
    ) -> EventRule {
        var rule = self
        rule.refusal = { draft, views in
            guard let views = views as? ViewSet, views.contains(view) else { return nil }
            return reason(draft, views.snapshot(view))
        }
        return rule
    }
}

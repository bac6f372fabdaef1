// Mistakes of an app that are no errors: an event that a view leaves out, a state that cannot be stored, a rule that is
// missing, a time in the wrong unit. Each is one log line for each type, or view, and opening.

import Foundation

extension EventStore {
    /// The number of events of each type that could not be converted to their newest form since the store
    /// was opened. Views have folded them as they were recorded. Events that a checkpoint covers are not
    /// counted.
    public nonisolated var upcastFailures: [String: Int] { views.upcastFailures.byType }

    /// The number of times that a view could not decode an event as a payload of the event's type since the
    /// store was opened, by type. A view that ignores the error leaves the event out; the store logs a warning
    /// for the first event of each type. Events that a checkpoint covers are not counted.
    public nonisolated var unreadableEvents: [String: Int] { views.unreadable.byType }

    /// Logs what the views could not decode. O(types) with news.
    func warnOfUnreadableEvents() {
        for error in views.unreadable.takeNews() {
            instruments.logger.warning(
                """
                a view could not decode an event, and leaves it out if it ignores the error: \(error.detail); give a \
                new member a default or make it optional, or add an upcaster
                """)
        }
    }

    /// Logs which views could not encode their states.
    func warnOfUnstoredStates(_ faults: [String: any Error]) {
        for (view, error) in faults.sorted(by: { $0.key < $1.key })
        where checkpointing.noteUnstorable(view) {
            // Another error may show a value of an event.
            let reason = (error as? EventError)?.detail ?? "\(type(of: error))"
            instruments.logger.warning(
                """
                the state of the view \(view) cannot be stored, so each opening folds it from the log: \(reason)
                """)
        }
    }

    /// Logs what the opening has shown.
    ///
    /// - Parameter knowsApp: false for a tool, which has no rules of the app's types.
    func warnAfterOpening(knowsApp: Bool) {
        warnOfUnreadableEvents()
        let missing = catalogue.typesWithoutRule
        guard knowsApp, !missing.isEmpty else { return }
        // An app may have dropped a type on purpose.
        instruments.logger.notice(
            """
            the log was written with rules that open was not given, so nothing validates new events of these types: \
            \(missing.joined(separator: ", ")); pass the rules, or an upcaster from a type that was renamed
            """)
    }

    /// Logs that a time is of January 1970: it was probably computed from seconds.
    func warnOfSecondsInTime(_ time: Timestamp, _ type: String) {
        let monthMilliseconds: Int64 = 31 * 86_400_000
        guard !hasWarnedOfSeconds, now > monthMilliseconds,
            0..<monthMilliseconds ~= time.milliseconds
        else { return }
        hasWarnedOfSeconds = true
        instruments.logger.warning(
            """
            an event of the type \(type) has the time \(time), so every later value wins over it; a Timestamp has \
            milliseconds since 1970, not seconds
            """)
    }
}

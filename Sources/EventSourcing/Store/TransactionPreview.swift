// The views as they will be once a transaction's events are recorded. Between Transaction and its batch.
// Spec/model/views.md, VIEW-30.

import LogFormat

/// The drafts of one transaction, checked and encoded. A draft is checked once, at the next read of a view
/// or at the end, and is folded once into each view that is read.
final class TransactionPreview {
    private let views: ViewSet
    private let catalogue: EventCatalogue
    private let now: () -> Int64
    private let prepare: (_ drafts: Range<Int>, EventStore.Transaction) throws -> [PreparedEvent]
    private var prepared: [PreparedEvent] = []
    private var encoder: BatchEncoder
    private var events: [Event] = []
    /// The states of the views that were read, and the number of events folded into each.
    private var states: [ObjectIdentifier: (state: any Projection, events: Int)] = [:]
    private var isRefused = false

    /// - Parameters:
    ///   - encoder: assigns the events their final positions and times.
    ///   - now: the clock.
    ///   - prepare: checks a range of a transaction's drafts.
    init(
        _ views: ViewSet, _ catalogue: EventCatalogue, _ encoder: BatchEncoder,
        now: @escaping () -> Int64,
        prepare: @escaping (_ drafts: Range<Int>, EventStore.Transaction) throws -> [PreparedEvent]
    ) {
        self.views = views
        self.catalogue = catalogue
        self.encoder = encoder
        self.now = now
        self.prepare = prepare
    }

    /// Checks the drafts that have not been checked yet.
    ///
    /// - Returns: all drafts, checked.
    /// - Throws: what `prepare` throws.
    func preparedEvents(of transaction: EventStore.Transaction) throws -> [PreparedEvent] {
        let new = prepared.count..<transaction.drafts.count
        if !new.isEmpty { prepared += try prepare(new, transaction) }
        return prepared
    }

    /// A view's state with the events of the transaction, or without them if one is refused.
    func state<View: Projection>(of view: View.Type, in transaction: EventStore.Transaction) -> View
    {
        do { try encodeNew(of: transaction) } catch { isRefused = true }
        let key = ObjectIdentifier(view)
        guard !isRefused, !events.isEmpty else { return views.snapshot(view) }
        // Removed from the dictionary, so that the fold changes it in place.
        let known = states.removeValue(forKey: key)
        var state = known?.state as? View ?? views.snapshot(view)
        state.fold(events[(known?.events ?? 0)...], by: catalogue)
        states[key] = (state, events.count)
        return state
    }

    private func encodeNew(of transaction: EventStore.Transaction) throws {
        let first = prepared.count
        guard !isRefused, first < transaction.drafts.count else { return }
        for event in try preparedEvents(of: transaction)[first...] {
            try encoder.assignPosition(to: event, now: now)
        }
        events += try encoder.events(from: events.count)
    }
}

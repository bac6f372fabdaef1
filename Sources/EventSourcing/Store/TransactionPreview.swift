// What the views of a transaction will be once its events are recorded. Between Transaction and the batch that is
// made of it. Spec/model/views.md, VIEW-30.

import LogFormat

/// The drafts of one transaction on their way into the log. A draft is checked once, by the first read of a view
/// after it or at the end, and is folded once into each view that is read.
final class TransactionPreview {
    private let views: ViewSet
    private let catalogue: EventCatalogue
    private let now: () -> Int64
    private let prepare: (_ drafts: Range<Int>, EventStore.Transaction) throws -> [PreparedEvent]
    private var prepared: [PreparedEvent] = []
    private var encoder: BatchEncoder
    private var events: [Event] = []
    /// The views that were read, and how many of the events are in them.
    private var states: [ObjectIdentifier: (state: any Projection, events: Int)] = [:]
    private var isRefused = false

    /// - Parameters:
    ///   - encoder: gives the events the positions and times that they are going to have.
    ///   - now: the time.
    ///   - prepare: checks a part of a transaction's drafts.
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
    /// - Returns: all drafts.
    /// - Throws: what checking throws.
    func preparedEvents(of transaction: EventStore.Transaction) throws -> [PreparedEvent] {
        let new = prepared.count..<transaction.drafts.count
        if !new.isEmpty { prepared += try prepare(new, transaction) }
        return prepared
    }

    /// A view's state with the events of the transaction, or without them where one is refused.
    func state<View: Projection>(of view: View.Type, in transaction: EventStore.Transaction) -> View
    {
        do { try encodeNew(of: transaction) } catch { isRefused = true }
        let key = ObjectIdentifier(view)
        guard !isRefused, !events.isEmpty else { return views.snapshot(view) }
        // Taken out, so that folding changes it in place.
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
            try encoder.add(event, now: now)
        }
        events += try encoder.events(from: events.count)
    }
}

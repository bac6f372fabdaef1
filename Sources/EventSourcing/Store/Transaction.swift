// Reads views and collects the events to record, with no other append in between. Between the commands
// and EventStore+Append. Spec/overview.md.

import Foundation
import LogFormat

extension EventStore {
    /// A transaction: reads the views, and collects events that are recorded together.
    public struct Transaction {
        /// The log's incarnation, the source of the transaction's events.
        package let incarnation: UUID
        /// The corrected time.
        public let now: Timestamp
        /// True for events that another log has recorded before: see `prepare(_:replacing:asHistory:)`.
        package var takesHistory = false
        private(set) var drafts: [EventDraft] = []
        /// The LWW timestamp of the value that a draft replaces, by the draft's index.
        var replaced: [Int: LWWTimestamp] = [:]
        /// The error of the first refused draft with its index, thrown when the transaction ends.
        private var refusal: (error: EventError, index: Int)?
        private let preview: TransactionPreview

        init(by incarnation: UUID, at now: Timestamp, _ preview: TransactionPreview) {
            self.incarnation = incarnation
            self.now = now
            self.preview = preview
        }

        /// The state of a view, with the events that this transaction has appended so far. If one of them
        /// is refused, so that the transaction will throw, the state is without them.
        ///
        /// - Complexity: O(1); each event is checked and folded once.
        public func view<View: Projection>(_ view: View.Type) -> View {
            preview.state(of: view, in: self)
        }

        /// The drafts, checked against the rules of their types.
        ///
        /// - Throws: `EventError`, `LogError`.
        func preparedEvents() throws -> [PreparedEvent] {
            if let refusal { throw refusal.error.ofEvent(refusal.index, in: drafts.count) }
            return try preview.preparedEvents(of: self)
        }

        /// Appends an event. An event that only the store may write is refused when the transaction ends
        /// (`EventError`, `refused`).
        public mutating func append(_ draft: EventDraft) {
            do throws(EventError) { try LogRecord.refuse(draft.type) } catch {
                if refusal == nil { refusal = (error, drafts.count) }
            }
            drafts.append(draft)
        }

        /// Appends a record of the store's own.
        package mutating func append(record: EventDraft) { drafts.append(record) }

        /// Appends a typed event.
        ///
        /// - Throws: what the payload's encoder throws.
        public mutating func append(_ payload: some EventPayload) throws {
            append(try EventDraft(payload))
        }
    }
}

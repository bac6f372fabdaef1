// What a decision reads and records, with nothing in between. Between the commands and EventStore+Append.
// Spec/overview.md.

import Foundation
import LogFormat

extension EventStore {
    /// Events that are checked against the state and recorded together.
    public struct Transaction {
        /// The name under which its events will be recorded.
        package let incarnation: UUID
        /// The corrected time.
        public let now: Timestamp
        /// True for events that were recorded elsewhere before: see `prepare(_:replacing:asHistory:)`.
        package var takesHistory = false
        private(set) var drafts: [EventDraft] = []
        /// The LWW timestamps of the values that drafts replace, by the drafts' indexes.
        var replaced: [Int: Stamp] = [:]
        /// Why none of them can be recorded.
        private var refusal: EventError?
        private let preview: TransactionPreview

        init(by incarnation: UUID, at now: Timestamp, _ preview: TransactionPreview) {
            self.incarnation = incarnation
            self.now = now
            self.preview = preview
        }

        /// The state of a view, with the events that this transaction has appended so far. Without them
        /// where one of them is going to be refused, so that the transaction will throw.
        ///
        /// - Complexity: O(1), and each event is checked and folded once.
        public func view<View: Projection>(_ view: View.Type) -> View {
            preview.state(of: view, in: self)
        }

        /// The drafts, checked by the rules of their types.
        ///
        /// - Throws: `EventError`, `LogError`.
        func preparedEvents() throws -> [PreparedEvent] {
            if let refusal { throw refusal }
            return try preview.preparedEvents(of: self)
        }

        /// Adds an event. One that only the store may write is refused when the transaction ends
        /// (`EventError`, `refused`).
        public mutating func append(_ draft: EventDraft) {
            do throws(EventError) { try LogRecord.refuse(draft.type) } catch { refusal = error }
            drafts.append(draft)
        }

        /// Adds a record of the store's own.
        package mutating func append(record: EventDraft) { drafts.append(record) }

        /// Adds a typed event.
        ///
        /// - Throws: what the payload's encoder throws.
        public mutating func append(_ payload: some EventPayload) throws {
            append(try EventDraft(payload))
        }
    }
}

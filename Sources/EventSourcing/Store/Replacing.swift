// The time of an event that replaces a value: after the LWW timestamp of that value, even if that was
// recorded by a clock that was ahead. Spec/model/views.md, VIEW-27; Spec/format/line.md, LINE-7.

import LogFormat

extension EventStore.Transaction {
    /// Appends an event that replaces a value set by another event. Its time is chosen so that its LWW
    /// timestamp is greater, whatever the clock says.
    ///
    /// Views that keep the value with the greatest LWW timestamp (`Register`) ignore an event with a
    /// lesser one. A value recorded by a clock that was ahead, on this or another device, would win over
    /// the new event. Pass the `lwwTimestamp` of the register that the event sets, from the view of this
    /// transaction; for several registers, the greatest:
    ///
    /// ```swift
    /// try await store.write { transaction in
    ///     let theme = transaction.view(ThemeView.self).theme
    ///     try transaction.append(ThemeChosen(name: "dark"), replacing: theme?.lwwTimestamp)
    /// }
    /// ```
    ///
    /// The time is the time of recording if that is later, else one millisecond after the replaced
    /// value's. An earlier `time` of the draft is raised. Events appended after it without a time win over
    /// it, too.
    ///
    /// - Parameters:
    ///   - draft: the event.
    ///   - lwwTimestamp: the LWW timestamp of the replaced value; nil if there is none.
    /// - Note: `write(_:)` throws `EventError` (`refused`) if the replaced value has the last time that a
    ///   line can hold: no event can win over it.
    public mutating func append(_ draft: EventDraft, replacing lwwTimestamp: LWWTimestamp?) {
        replaced[drafts.count] = lwwTimestamp
        append(draft)
    }

    /// Appends a typed event that replaces a value set by another event, as the method for drafts.
    ///
    /// - Throws: what the payload's encoder throws.
    public mutating func append(_ payload: some EventPayload, replacing lwwTimestamp: LWWTimestamp?)
        throws
    {
        append(try EventDraft(payload), replacing: lwwTimestamp)
    }
}

extension EventStore {
    /// Records a typed event that replaces a value set by another event, as
    /// `Transaction.append(_:replacing:)`.
    ///
    /// Other events may be recorded between reading the view and this call. If that matters, read the view
    /// in `write(_:)`.
    ///
    /// - Parameters:
    ///   - payload: the event's data.
    ///   - lwwTimestamp: the LWW timestamp of the replaced value; nil if there is none.
    ///   - durability: when this method returns.
    /// - Throws: as `append(_:durability:)`; `EventError` (`refused`) if no event can win over the replaced
    ///   value.
    @discardableResult
    public nonisolated(nonsending) func append(
        _ payload: some EventPayload, replacing lwwTimestamp: LWWTimestamp?,
        durability: Durability = .durable
    ) async throws -> Appended {
        let draft = try EventDraft(payload)
        try LogRecord.refuse(draft.type)
        return try await enqueueAppend(durability) {
            try $0.prepare([draft], replacing: { _ in lwwTimestamp })
        }[0]
    }
}

extension Timestamp {
    /// The earliest time, not before this one, at which an event wins over a value.
    ///
    /// - Parameters:
    ///   - lwwTimestamp: the LWW timestamp of the value.
    ///   - source: the incarnation that records the event.
    ///   - sequence: the event's number under `source`.
    /// - Throws: `EventError` (`refused`) if the value has the last possible time.
    func raised(
        above lwwTimestamp: LWWTimestamp, source: UInt128, sequence: UInt64
    ) throws(EventError) -> Timestamp {
        guard LWWTimestamp(time: self, source: source, sequence: sequence) <= lwwTimestamp else {
            return self
        }
        let next = Timestamp(milliseconds: lwwTimestamp.time.milliseconds + 1)
        guard LWWTimestamp(time: next, source: source, sequence: sequence) > lwwTimestamp else {
            throw EventError(
                .refused,
                "the value was set at \(lwwTimestamp.time), the last time that an event can have; "
                    + "nothing can replace it. Record under another id, or erase the log")
        }
        return next
    }
}

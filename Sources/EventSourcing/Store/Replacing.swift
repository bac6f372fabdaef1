// The time of an event that replaces a value: behind the LWW timestamp of that value, also where a
// clock that was ahead has recorded it. Spec/model/views.md, VIEW-27; Spec/format/line.md, LINE-7.

import LogFormat

extension EventStore.Transaction {
    /// Adds an event that replaces what another event has set: it gets a time by which it counts
    /// more, whatever the clock says.
    ///
    /// Views that keep the value with the greatest LWW timestamp (`Register`) ignore an event with a
    /// lesser one. A clock that was ahead leaves such a value behind, and so does another device
    /// whose clock is. Pass the `stamp` of the register that the event sets, as the view of this
    /// transaction has it; of several registers pass the greatest:
    ///
    /// ```swift
    /// try await store.write { transaction in
    ///     let theme = transaction.view(ThemeView.self).theme
    ///     try transaction.append(ThemeChosen(name: "dark"), replacing: theme?.stamp)
    /// }
    /// ```
    ///
    /// The time is that of the recording where this is later, else one millisecond behind the
    /// replaced one. A `time` of the draft that is not later is raised. Events that are added
    /// behind it without a time of their own count more than it, too.
    ///
    /// - Parameters:
    ///   - draft: the event.
    ///   - stamp: the LWW timestamp of the value that it replaces; nil where there is none.
    /// - Note: `write(_:)` throws `EventError` (`refused`) where nothing can count more, since the
    ///   replaced value has the last time that a line can hold.
    public mutating func append(_ draft: EventDraft, replacing stamp: Stamp?) {
        replaced[drafts.count] = stamp
        append(draft)
    }

    /// Adds a typed event that replaces what another event has set. As the one for drafts.
    ///
    /// - Throws: what the payload's encoder throws.
    public mutating func append(_ payload: some EventPayload, replacing stamp: Stamp?) throws {
        append(try EventDraft(payload), replacing: stamp)
    }
}

extension EventStore {
    /// Records a typed event that replaces what another event has set: it gets a time by which it
    /// counts more, whatever the clock says. As `Transaction.append(_:replacing:)`.
    ///
    /// Other events may be recorded between reading the view and this call. Where they matter, read
    /// the view in `write(_:)`.
    ///
    /// - Parameters:
    ///   - payload: the event's data.
    ///   - stamp: the LWW timestamp of the value that it replaces; nil where there is none.
    ///   - durability: when this returns.
    /// - Throws: as `append(_:durability:)`; `EventError` (`refused`) where nothing can count more.
    @discardableResult
    public nonisolated(nonsending) func append(
        _ payload: some EventPayload, replacing stamp: Stamp?, durability: Durability = .durable
    ) async throws -> Appended {
        let draft = try EventDraft(payload)
        try LogRecord.refuse(draft.type)
        return try await commit(durability) {
            try $0.prepare([draft], replacing: { _ in stamp })
        }[0]
    }
}

extension Timestamp {
    /// The time from this one on at which an event counts more than another one.
    ///
    /// - Parameters:
    ///   - stamp: the LWW timestamp of the other one.
    ///   - source: the incarnation that records the event.
    ///   - sequence: the event's number under it.
    /// - Throws: `EventError` (`refused`) where the other one has the last time there is.
    func behind(
        _ stamp: Stamp, source: UInt128, sequence: UInt64
    ) throws(EventError) -> Timestamp {
        guard Stamp(time: self, source: source, sequence: sequence) <= stamp else { return self }
        let next = Timestamp(milliseconds: stamp.time.milliseconds + 1)
        guard Stamp(time: next, source: source, sequence: sequence) > stamp else {
            throw EventError(
                .refused,
                "the value was set at \(stamp.time), the last time that an event can have; "
                    + "nothing can replace it. Record under another id, or erase the log")
        }
        return next
    }
}

// Shipping and compaction in a StoreHistory. Compares the shipped batches with the model's outbox, applies
// the verdicts to the model, and checks that compaction removed only superseded events.

import DaybookOffline
import DaybookTestKit
import Foundation
import LogStorage

extension StoreHistory {
    mutating func sync(
        _ verdicts: [ScriptedVerdict], _ status: Int, _ ahead: Int64?
    ) async throws {
        let server = ScriptedServer(verdicts, status: status, date: ahead.map { model.now + $0 })
        let report: SyncReport
        do {
            // The model's clock stands still: a wait, of which the answers ask for one, ends the run.
            report = try await Replayer(
                store.events, transport: server, sleep: { _ in throw CancellationError() }
            ).run()
        } catch let error as LogError where phase != .open {
            try require(error.code == (phase == .closed ? .closed : .suspended), "\(error.code)")
            try require(server.exchanges.isEmpty, "a request was sent while the store is \(phase)")
            return
        }
        try require(phase == .open, "a sync succeeded while the store is \(phase)")
        // Only durable events may be shipped, so the sync has flushed the relaxed ones.
        model.durable = model.lines.count
        var expected = SyncReport()
        for exchange in server.exchanges { try await applyExchange(exchange, ahead, &expected) }
        try require(
            report.applied == expected.applied && report.duplicate == expected.duplicate
                && report.rejected == expected.rejected && report.conflict == expected.conflict
                && report.pending == model.outbox.count, "the report is \(report), not \(expected)")
        if status == 200 {
            // A remaining event must be held by a parked, conflicting or backed-off event of its lane.
            for line in model.outbox {
                try require(isHeld(line), "the event at \(line.position) was not sent")
            }
        }
        let last = await store.events.lastDurable.rawValue
        try require(
            last == model.lines.count,
            "the log has \(last) lines after a sync, not \(model.lines.count)")
        model.durable = model.lines.count
    }

    /// Whether the line or an earlier one of its lane has an answer that holds the lane.
    private func isHeld(_ line: ModelLine) -> Bool {
        model.outbox.contains {
            $0.lane == line.lane && $0.position <= line.position
                && model.answers[$0.position] != nil
        }
    }

    private mutating func applyExchange(
        _ exchange: ScriptedServer.Exchange, _ ahead: Int64?, _ report: inout SyncReport
    ) async throws {
        let outbox = model.outbox
        var sent: [ModelLine] = []
        for (id, _) in exchange.verdicts {
            guard let line = outbox.first(where: { $0.id == id }) else {
                throw Difference(description: "an event was sent that is not in the outbox: \(id)")
            }
            let earlier = outbox.filter { $0.lane == line.lane && $0.position < line.position }
            try require(
                earlier.allSatisfy { event in sent.contains { $0.id == event.id } },
                "the event at \(line.position) overtakes an earlier one of its lane")
            let answer = model.answers[line.position]
            try require(
                answer?.status ?? .pending == .pending || answer?.isExhausted == true,
                "the parked event at \(line.position) was sent")
            sent.append(line)
        }
        let batch = Array("[".utf8) + sent.map(\.text).joined(separator: Array(",".utf8))
        try require(
            batch + Array("]".utf8) == exchange.batch, "the batch differs from the stored lines")
        try require(
            sent.count <= 500 && exchange.batch.count <= 1_048_577, "the batch is too large")
        if sent.count > 1 { count("batch of several") }

        var stoppedLanes: Set<Text> = []
        var settled: [UInt64] = []
        var answered: [(line: ModelLine, verdict: ScriptedVerdict)] = []
        for (line, (_, verdict)) in zip(sent, exchange.verdicts)
        where !stoppedLanes.contains(line.lane) {
            switch verdict {
            case .applied, .duplicate:
                settled.append(line.position)
                if verdict == .applied { report.applied += 1 } else { report.duplicate += 1 }
            case .rejected, .conflict, .retry:
                stoppedLanes.insert(line.lane)
                answered.append((line, verdict))
            case .unprocessed, .missing: stoppedLanes.insert(line.lane)
            }
            count("server: \(verdict)")
        }
        // The store records a reply only if it settled or answered an event.
        guard !settled.isEmpty || !answered.isEmpty else { return }
        if let ahead {
            let offset = ahead + 500
            model.offset = abs(offset) <= 1_000 ? 0 : offset
        }
        let time = try await adoptRecord()
        // A reply without a date does not set the clock.
        model.recordContact(at: time, hasDate: ahead != nil)
        for position in settled { model.settleEvent(at: position) }
        for (line, verdict) in answered { applyVerdict(verdict, of: line, at: time, &report) }
    }

    private mutating func applyVerdict(
        _ verdict: ScriptedVerdict, of line: ModelLine, at time: Int64,
        _ report: inout SyncReport
    ) {
        let previous = model.answers[line.position]
        var count = previous?.retryCount ?? 0
        let status: OutboxEntry.Status
        switch verdict {
        case .conflict:
            status = .conflict
            report.conflict += 1
        case .retry:
            count = min(5, count + 1)
            status = count == 5 ? .failed : .pending
            if count == 5 { self.count("fifth retry") }
        default: status = .failed
        }
        if previous?.isExhausted == true { self.count("exhausted, and sent again") }
        if status == .failed, previous?.status != .failed { report.rejected += 1 }
        // A `retry` without a detail has no message.
        let messages: [ScriptedVerdict: String] = [
            .conflict: "newer \u{1F469}", .rejected: "rejected",
        ]
        model.setAnswer(
            StoreModel.Answer(
                status: status, retryCount: count, at: time, message: messages[verdict],
                isExhausted: verdict == .retry && count == 5),
            at: line.position)
    }

    /// Appends to the model the next line of the log, a record that the store made.
    ///
    /// - Returns: its time.
    @discardableResult
    private mutating func adoptRecord() async throws -> Int64 {
        let position = Position(UInt64(model.lines.count + 1))
        guard let event = try await store.events.event(at: position), event.type == SyncSettled.type
        else { throw Difference(description: "no record at \(position)") }
        var next = model
        guard case .recorded = next.append([ModelDraft(draft: event.content.withoutTime)]) else {
            throw Difference(description: "the record at \(position) is not a new event")
        }
        let time = next.lines[model.lines.count].time
        try require(
            event.time.milliseconds == time, "the time of the record at \(position) is wrong")
        model = next
        return time
    }

    // MARK: Compaction

    mutating func compact(dryRun: Bool) async throws {
        let report: CompactionReport
        do {
            if phase == .open {
                try await store.events.flush()
                model.durable = model.lines.count
                // Compaction reads sealed segments only, and does not seal small ones.
                if !dryRun { try store.events.log.roll() }
            }
            report = try await store.compact(dryRun: dryRun)
        } catch let error as LogError where phase != .open {
            try require(error.code == (phase == .closed ? .closed : .suspended), "\(error.code)")
            return
        }
        try require(phase == .open, "a compaction succeeded while the store is \(phase)")
        guard !dryRun else { return }
        // A compaction may first append a folded record of the replies.
        let last = await store.events.lastDurable.rawValue
        if last > model.lines.count {
            model.recordContact(at: try await adoptRecord(), hasDate: false)
        }
        try require(
            last == model.lines.count,
            "the log has \(last) lines after a compaction, not \(model.lines.count)")
        model.durable = model.lines.count
        model.compactedThrough = max(model.compactedThrough, report.compactedThrough.rawValue)
        model.forgetExpiredIDs()

        var positions: Set<UInt64> = []
        try LogReader(folder, fileSystem: disk.system).forEachLine { prefix, _ in
            positions.insert(prefix.position.rawValue)
            return true
        }
        let unsettled = Set(model.outbox.map(\.position))
        let removed = model.storedLines.filter { !positions.contains($0.position) }
        for line in removed {
            try require(
                isRemovable(line) && !unsettled.contains(line.position),
                "compaction removed an event that is needed: \(line.draft)")
            model.removeLine(at: line.position)
        }
        try require(
            report.removed == removed.count,
            "compaction reports \(report.removed) removed events, not \(removed.count)")
        if !removed.isEmpty { count("compacted away", by: removed.count) }
        try await readBack()
    }

    /// Whether compaction may remove a line because the views no longer need it.
    private func isRemovable(_ line: ModelLine) -> Bool {
        if line.draft.draft.type == SyncSettled.type { return true }
        let views = model.views
        switch line.draft.fact {
        case .city(let user, let city, _):
            return views.marks[.init(user: user, city: city)]?.lwwTimestamp != line.lwwTimestamp
        case .noteAdded(let note, _, _, _):
            return views.notes[note]?.isDeleted ?? false
                || views.notes[note]?.origin?.lwwTimestamp != line.lwwTimestamp
        case .noteUpdated(let note, _, _):
            return views.notes[note]?.isDeleted ?? false
                || views.notes[note]?.content?.lwwTimestamp != line.lwwTimestamp
        case .noteDeleted, .trip, .other: return false
        case .preferences(let user, let changes):
            return changes.keys.allSatisfy {
                views.settings[user]?[$0]?.lwwTimestamp != line.lwwTimestamp
            }
        case .course(let user, _): return views.courses[user]?.lwwTimestamp != line.lwwTimestamp
        case .lesson(let user, let course, let lesson, _):
            return views.lessons[.init(user: user, course: course, lesson: lesson)]?.first
                != line.lwwTimestamp
        case .review(let user, _, let review, _, _):
            let key = ModelViews.ReviewKey(user: user, review: review)
            return views.reviews[key]?.lwwTimestamp != line.lwwTimestamp
                && views.firstReviews[key] != line.lwwTimestamp
        }
    }
}

extension EventDraft {
    fileprivate var withoutTime: EventDraft {
        var draft = self
        draft.time = nil
        draft.lane = nil
        return draft
    }
}

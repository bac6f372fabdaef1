// Shipping and compaction in a history: what the server was sent is compared with the model's outbox,
// its answers are taken into the model, and what compaction took out must have been for nothing.
// Used by StoreHistory.

import DaybookOffline
import DaybookTestKit
import Foundation
import LogStorage

extension StoreHistory {
    mutating func sync(_ words: [ServerWord], _ status: Int, _ ahead: Int64?) async throws {
        let server = ScriptedServer(words, status: status, date: ahead.map { model.now + $0 })
        let report: SyncReport
        do {
            report = try await Replayer(store.events, transport: server).run()
        } catch let error as LogError where phase != .open {
            try require(error.code == (phase == .closed ? .closed : .suspended), "\(error.code)")
            try require(server.exchanges.isEmpty, "sent although the store is \(phase)")
            return
        }
        try require(phase == .open, "shipped although the store is \(phase)")
        // What waited is on the disk: nothing else may be shipped.
        model.durable = model.lines.count
        var expected = SyncReport()
        for exchange in server.exchanges { try await take(exchange, ahead, &expected) }
        try require(
            report.applied == expected.applied && report.duplicate == expected.duplicate
                && report.rejected == expected.rejected && report.conflict == expected.conflict
                && report.pending == model.outbox.count, "\(report), not \(expected)")
        if status == 200 {
            // Whatever is left is behind something that somebody has to decide, or must be waited for.
            for line in model.outbox { try require(isHeld(line), "not sent: \(line.position)") }
        }
        let last = await store.events.lastDurable.rawValue
        try require(last == model.lines.count, "\(last) lines after a sync")
        model.durable = model.lines.count
    }

    /// Whether something of the line's lane keeps it back, itself included.
    private func isHeld(_ line: ModelLine) -> Bool {
        model.outbox.contains {
            $0.lane == line.lane && $0.position <= line.position
                && model.answers[$0.position] != nil
        }
    }

    private mutating func take(
        _ exchange: ScriptedServer.Exchange, _ ahead: Int64?, _ report: inout SyncReport
    ) async throws {
        let outbox = model.outbox
        var sent: [ModelLine] = []
        for (id, _) in exchange.words {
            guard let line = outbox.first(where: { $0.id == id }) else {
                throw Difference(description: "sent what is not in the outbox")
            }
            let before = outbox.filter { $0.lane == line.lane && $0.position < line.position }
            try require(
                before.allSatisfy { one in sent.contains { $0.id == one.id } },
                "\(line.position) overtakes in its lane")
            let answer = model.answers[line.position]
            try require(
                answer?.status ?? .pending == .pending || answer?.isExhausted == true,
                "sent though parked")
            sent.append(line)
        }
        let batch = Array("[".utf8) + sent.map(\.text).joined(separator: Array(",".utf8))
        try require(batch + Array("]".utf8) == exchange.batch, "the batch is not the lines")
        try require(
            sent.count <= 500 && exchange.batch.count <= 1_048_577, "the batch is too large")
        if sent.count > 1 { count("batch of several") }

        var stopped: Set<Text> = []
        var settled: [UInt64] = []
        var answered: [(line: ModelLine, word: ServerWord)] = []
        for (line, (_, word)) in zip(sent, exchange.words) where !stopped.contains(line.lane) {
            switch word {
            case .applied, .duplicate:
                settled.append(line.position)
                if word == .applied { report.applied += 1 } else { report.duplicate += 1 }
            case .rejected, .conflict, .retry:
                stopped.insert(line.lane)
                answered.append((line, word))
            case .unprocessed, .missing: stopped.insert(line.lane)
            }
            count("server: \(word)")
        }
        // The record of the reply.
        guard !settled.isEmpty || !answered.isEmpty else { return }
        if let ahead {
            let offset = ahead + 500
            model.offset = abs(offset) <= 1_000 ? 0 : offset
        }
        let time = try await adoptRecord()
        // A reply without a date tells nothing of the clock.
        model.hear(at: time, tellsClock: ahead != nil)
        for position in settled { model.settle(position) }
        for (line, word) in answered { take(word, of: line, at: time, &report) }
    }

    private mutating func take(
        _ word: ServerWord, of line: ModelLine, at time: Int64, _ report: inout SyncReport
    ) {
        let before = model.answers[line.position]
        var count = before?.retryCount ?? 0
        let status: OutboxEntry.Status
        switch word {
        case .conflict:
            status = .conflict
            report.conflict += 1
        case .retry:
            count = min(5, count + 1)
            status = count == 5 ? .failed : .pending
            if count == 5 { self.count("fifth retry") }
        default: status = .failed
        }
        if before?.isExhausted == true { self.count("exhausted, and sent again") }
        if status == .failed, before?.status != .failed { report.rejected += 1 }
        let words: [ServerWord: String] = [.conflict: "newer \u{1F469}", .rejected: "rejected"]
        // A retry without words says nothing.
        model.set(
            StoreModel.Answer(
                status: status, retryCount: count, at: time, message: words[word],
                isExhausted: word == .retry && count == 5),
            at: line.position)
    }

    /// Takes in the next line, which the store has made by itself.
    @discardableResult
    private mutating func adoptRecord() async throws -> Int64 {
        let position = Position(UInt64(model.lines.count + 1))
        guard let event = try await store.events.event(at: position), event.type == SyncSettled.type
        else { throw Difference(description: "no record at \(position)") }
        var next = model
        guard case .recorded = next.append([ModelDraft(draft: event.content.withoutTime)]) else {
            throw Difference(description: "the record at \(position) is no new event")
        }
        let time = next.lines[model.lines.count].time
        try require(event.time.milliseconds == time, "the time of the record at \(position)")
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
                // Small segments are not sealed for their own sake.
                if !dryRun { try store.events.log.roll() }
            }
            report = try await store.compact(dryRun: dryRun)
        } catch let error as LogError where phase != .open {
            try require(error.code == (phase == .closed ? .closed : .suspended), "\(error.code)")
            return
        }
        try require(phase == .open, "compacted although the store is \(phase)")
        guard !dryRun else { return }
        // The records of replies are summed up first.
        let last = await store.events.lastDurable.rawValue
        if last > model.lines.count {
            model.hear(at: try await adoptRecord(), tellsClock: false)
        }
        try require(last == model.lines.count, "\(last) lines after a compaction")
        model.durable = model.lines.count
        model.compactedThrough = max(model.compactedThrough, report.compactedThrough.rawValue)
        model.forget()

        var positions: Set<UInt64> = []
        try LogReader(folder, fileSystem: disk.system).forEachLine { prefix, _ in
            positions.insert(prefix.position.rawValue)
            return true
        }
        let waiting = Set(model.outbox.map(\.position))
        let gone = model.kept.filter { !positions.contains($0.position) }
        for line in gone {
            try require(canGo(line) && !waiting.contains(line.position), "taken out: \(line.draft)")
            model.remove(line.position)
        }
        try require(report.removed == gone.count, "\(report.removed) taken out, not \(gone.count)")
        if !gone.isEmpty { count("compacted away", by: gone.count) }
        try await readBack()
    }

    /// Whether a line may be taken out at all: what was superseded by something settled.
    private func canGo(_ line: ModelLine) -> Bool {
        if line.draft.draft.type == SyncSettled.type { return true }
        let views = model.views
        switch line.draft.fact {
        case .city(let user, let city, _):
            return views.marks[.init(user: user, city: city)]?.stamp != line.stamp
        case .noteAdded(let note, _, _, _):
            return views.notes[note]?.isDeleted ?? false
                || views.notes[note]?.origin?.stamp != line.stamp
        case .noteUpdated(let note, _, _):
            return views.notes[note]?.isDeleted ?? false
                || views.notes[note]?.content?.stamp != line.stamp
        case .noteDeleted, .trip, .other: return false
        case .preferences(let user, let changes):
            return changes.keys.allSatisfy { views.settings[user]?[$0]?.stamp != line.stamp }
        case .course(let user, _): return views.courses[user]?.stamp != line.stamp
        case .lesson(let user, let course, let lesson, _):
            return views.lessons[.init(user: user, course: course, lesson: lesson)]?.first
                != line.stamp
        case .review(let user, _, let review, _, _):
            let key = ModelViews.ReviewKey(user: user, review: review)
            return views.reviews[key]?.stamp != line.stamp
                && views.firstReviews[key] != line.stamp
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

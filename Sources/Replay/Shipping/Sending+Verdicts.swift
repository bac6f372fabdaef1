// What Sending does with the verdicts of a batch: settles, charges, parks. V1 to V5 of Spec/protocol/replay.md.

import EventSourcing
import Foundation
import LogFormat
import SyncWire

extension Sending {
    mutating func apply(
        _ verdicts: [Verdict], _ items: [ReplayItem], isServers: Bool,
        _ moment: ReplayState.Moment
    ) -> [Effect] {
        var settlement = ReplayState.Settlement()
        settlement.hasVerdicts = true
        var others: [Effect] = []
        AnsweredBatch(items, verdicts).forEach { item, place in
            switch verdicts[place].status {
            case .applied:
                settlement.applied.append(item.position)
                settle(item, verdicts[place].code, &settlement)
            case .duplicate:
                settlement.duplicate.append(item.position)
                settle(item, verdicts[place].code, &settlement)
            case .rejected:  // V2
                let (code, detail) = (verdicts[place].code, verdicts[place].detail)
                settlement.entries += park(item, code ?? "rejected", detail ?? "rejected")
            case .conflict:  // V3
                guard queue.lanes.isFirst(item) else { return }
                queue.lanes.holdLane(of: item)
                others.append(.resolve(item, current: verdicts[place].current))
                settlement.entries.append(SyncSettled.Entry(conflict: verdicts[place], item))
            case .retry where !isServers: others += postpone(item, verdicts[place], moment)
            case .retry:  // V4
                guard queue.lanes.isFirst(item) else { return }
                settlement.entries.append(charge(item, verdicts[place], moment))
            case .unprocessed: break
            }
        }
        // An answer of the transport itself shows nothing of the server.
        guard isServers else { return (settlement.isEmpty ? [] : [.record(settlement)]) + others }
        guard !settlement.isEmpty else {
            let refusal = Refusal(noVerdicts: "the server processed no event")
            return handle(.failed(items, refusal, moment))
        }
        eventsMax = min(eventsLimit, eventsMax * 2)
        postponements = [:]
        for case .record(let parked) in perform(bisection.handle(.succeeded)) {
            settlement.entries += parked.entries
        }
        return perform(narrowing.handle(.accepted(items)), moment)
            + [.succeeded, .record(settlement)] + others
    }

    /// V1: removes an event that the server has.
    private mutating func settle(
        _ item: ReplayItem, _ code: String?, _ settlement: inout ReplayState.Settlement
    ) {
        queue.lanes.removeSettled(item)
        queue.resolutions.settled(item)
        if code == Verdict.Code.sourceFork.rawValue { settlement.forked.insert(item.source) }
    }

    mutating func park(_ item: ReplayItem, _ reply: TransportReply) -> [Effect] {
        var settlement = ReplayState.Settlement()
        settlement.entries = park(
            item, "http_\(reply.status)",
            reply.status == 413 ? "too large" : "the server calls it malformed")
        return settlement.isEmpty ? [] : [.record(settlement)]
    }

    mutating func park(
        _ item: ReplayItem, _ code: String, _ detail: String
    ) -> [SyncSettled.Entry] {
        // A decision may have removed the event meanwhile.
        guard queue.lanes.isFirst(item) else { return [] }
        queue.lanes.holdLane(of: item)
        return [
            SyncSettled.Entry(
                position: item.position.rawValue, id: item.id, outcome: .parked,
                retryCount: item.retryCount, code: code, detail: detail,
                isFinal: item.retryCount == Retries.max)
        ]
    }

    /// V4: counts the retry and holds the lane. The fifth retry exhausts the event (PRK-4).
    private mutating func charge(
        _ item: ReplayItem, _ verdict: Verdict, _ moment: ReplayState.Moment
    ) -> SyncSettled.Entry {
        let before = queue.lanes.retryCount(of: item)
        let count = min(before + 1, Retries.max)
        let isExhausted = count == Retries.max
        let asked = verdict.retryAfterSeconds.map(Pipeline.wait(asked:)) ?? 0
        let delay =
            isExhausted
            ? max(asked, Retries.exhaustedDelay(of: item.id))
            : asked > 0 ? asked : Pipeline.wait(afterFailures: before, moment.random)
        queue.lanes.holdLane(of: item, until: moment.now + delay, retryCount: count)
        return SyncSettled.Entry(
            position: item.position.rawValue, id: item.id,
            outcome: isExhausted ? .parked : .retry, retryCount: count, code: verdict.code,
            detail: verdict.detail)
    }

    /// REQ-2: the request waits for another answer. The lane waits as after a `retry`, and nothing is charged.
    private mutating func postpone(
        _ item: ReplayItem, _ verdict: Verdict, _ moment: ReplayState.Moment
    ) -> [Effect] {
        guard queue.lanes.isFirst(item) else { return [] }
        let count = postponements[item.id, default: 0]
        postponements[item.id] = count + 1
        let wait = Pipeline.wait(afterFailures: count, moment.random)
        queue.lanes.holdLane(of: item, until: moment.now + wait)
        return [.report("the event \(item.id.text) waits: \(verdict.detail ?? "")")]
    }
}

// What Sending does with a batch that was refused or failed: the effects of the two searches. W2, W3 and N2 to N6 of
// Spec/protocol/replay.md.

import EventSourcing
import Foundation
import LogFormat
import SyncWire

extension Sending {
    mutating func perform(_ effects: [Bisection.Effect]) -> [Effect] {
        effects.flatMap { effect -> [Effect] in
            switch effect {
            case .hold(let item): queue.lanes.holdLane(of: item)
            case .release(let item): queue.lanes.releaseLane(of: item)
            case .deferLane(let item): queue.lanes.deferLane(of: item)
            case .park(let item, let reply): return park(item, reply)
            case .pause(let status):
                _ = narrowing.handle(.paused)
                return [.pause(status: status)]
            }
            return []
        }
    }

    mutating func perform(
        _ effects: [Narrowing.Effect], _ moment: ReplayState.Moment
    ) -> [Effect] {
        effects.flatMap { effect -> [Effect] in
            switch effect {
            case .suspect(let item, let failures):
                guard failures > 0 else {
                    queue.lanes.deferLane(of: item, isAlone: true)
                    return []
                }
                let wait = Pipeline.wait(afterFailures: failures - 1, moment.random)
                queue.lanes.holdLane(of: item, until: moment.now + wait, failuresAlone: 0)
            case .clear(let item):
                queue.lanes.releaseLane(of: item)
                queue.lanes.deferLane(of: item)
            case .setAside(let item, let refusal): return setAside(item, refusal, moment)
            case .releaseSetAside: queue.lanes.releaseParked(all: false)
            case .wait(let refusal): return [.wait(refusal)]
            case .delay(let seconds): return [.delay(seconds: seconds)]
            }
            return []
        }
    }

    /// N5: parks an event, and sends it again, alone, after a wait that grows with its failures.
    mutating func setAside(
        _ item: ReplayItem, _ refusal: Refusal, _ moment: ReplayState.Moment
    ) -> [Effect] {
        // A decision may have removed the event meanwhile.
        guard queue.lanes.isFirst(item) else { return [] }
        let failures = min(item.failuresAlone + 1, Retries.failuresAloneMax)
        let delay = Retries.setAsideDelay(of: item.id, afterFailures: failures)
        queue.lanes.holdLane(of: item, until: moment.now + delay, failuresAlone: failures)
        var settlement = ReplayState.Settlement()
        settlement.entries = [
            SyncSettled.Entry(
                position: item.position.rawValue, id: item.id, outcome: .parked,
                retryCount: item.retryCount, code: refusal.code, detail: refusal.detail,
                failuresAlone: failures)
        ]
        return [
            .record(settlement),
            .report("the event \(item.id.text) is set aside: \(refusal.detail)"),
        ]
    }

    /// W3. If no other event is left to send, the suspect is the cause, unless the answer to another request may
    /// still show that the endpoint is right.
    mutating func narrow(
        _ items: [ReplayItem], _ reply: TransportReply, _ isAlone: Bool
    ) -> [Effect] {
        let effects = perform(bisection.handle(.refused(items, reply)))
        guard items.count == 1, effects.isEmpty, !isReady, !reply.isHTML || isAlone else {
            return effects
        }
        return handle(.exhausted)
    }
}

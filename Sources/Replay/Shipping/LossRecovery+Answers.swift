// What the recovery does with an answer: the search for an event on which requests fail. RPL-14 of
// Spec/protocol/replay.md.

import Foundation
import SyncWire

extension LossRecovery {
    /// The number of lone events that may fail in a row before another one decides.
    private static let suspectsMax = 5
    /// The longest wait that a server may ask for before a first failure is searched at once, in seconds.
    private static let shortWait = 5.0

    /// Handles the answer to the batch.
    ///
    /// - Parameter verdicts: the verdicts of the answer, if it has any.
    mutating func handleAnswer(
        _ answer: ReplayState.Answer, with verdicts: [Verdict]?
    ) -> Effect {
        isSearching = false
        switch AnswerRow(answer) {
        case .refused: return .failed(answer)
        case .complete:
            guard let verdicts, isAnswered(by: verdicts) else {
                return fail(.failure("the answer does not come from a sync server"))
            }
            return processed(verdicts)
        case .tooLarge(let reply) where !reply.isHTML, .malformed(let reply) where !reply.isHTML:
            return search(answer, isRefusal: true)
        case .wait(let seconds, _) where failures == 0 && seconds <= Self.shortWait:
            failures = 1
            return .failed(answer)
        case .unauthorized, .tooLarge, .malformed, .wrongEndpoint, .wait, .failed, .unanswered:
            return fail(answer)
        }
    }

    /// Whether so many lone events have failed in a row that the endpoint may be the reason.
    var hasManySuspects: Bool { suspects.count >= Self.suspectsMax }

    /// Whether the server has decided on an event of the batch.
    private func isAnswered(by verdicts: [Verdict]) -> Bool {
        let ids = Set(batch.map(\.id))
        return verdicts.contains { $0.status != .unprocessed && ids.contains($0.id) }
    }

    private mutating func processed(_ verdicts: [Verdict]) -> Effect {
        settleSuspects()
        (failures, searchAt) = (0, 0)
        guard !isComparing else {
            isComparing = false
            return .processed
        }
        eventsMax = min(Sending.batchEvents, eventsMax * 2)
        next += batch.count
        apply(verdicts)
        return .processed
    }

    /// Handles a failure that the events may have caused, or the endpoint. An outage is not multiplied: after a search
    /// in vain some failures begin none.
    private mutating func fail(_ answer: ReplayState.Answer) -> Effect {
        if suspects.isEmpty, eventsMax == Sending.batchEvents {
            failures += 1
            guard failures >= searchAt else { return .failed(answer) }
        }
        return search(answer, isRefusal: false)
    }

    /// Halves a batch until the event that is the reason is alone.
    ///
    /// - Parameter isRefusal: whether the answer says something of the batch.
    private mutating func search(_ answer: ReplayState.Answer, isRefusal: Bool) -> Effect {
        guard !isComparing else {
            searchedInVain()
            return .failed(answer)
        }
        isSearching = true
        guard batch.count == 1 else {
            eventsMax = batch.count / 2
            return .refused
        }
        let item = batch[0]
        lastReply = if case .reply(let reply) = answer { reply } else { nil }
        // Nothing is left out within the time that the server asks for.
        if case .wait(let seconds, _) = AnswerRow(answer) {
            requestedSeconds = max(requestedSeconds ?? 0, seconds)
        }
        // Left out for good, so not after a few requests that a bad network has lost.
        let count = (failuresAlone[item.position] ?? 0) + 1
        let isPostponed = !isRefusal && count < Retries.max
        suspects.append(Suspect(index: next, isPostponed: isPostponed))
        guard !hasManySuspects || accepted != nil else {
            searchedInVain()
            return .failed(answer)
        }
        // The next one is sent alone, too.
        eventsMax = 1
        next += 1
        if isPostponed { postpone(item) }
        return .refused
    }

    /// The endpoint is the reason: the events are sent again, with others.
    mutating func searchedInVain() {
        if let first = suspects.first {
            next = first.index
            // They are skipped again.
            let position = items[first.index].position
            postponed.removeAll { $0.position >= position }
            postponedLanes = Set(postponed.map(\.lane))
        }
        (suspects, isSearching, isComparing) = ([], false, false)
        eventsMax = Sending.batchEvents
        searchAt = failures + min(max(1, failures), 8)
    }

    private mutating func settleSuspects() {
        for suspect in suspects {
            let position = items[suspect.index].position
            if suspect.isPostponed {
                failuresAlone[position, default: 0] += 1
            } else {
                counts.notAccepted.append(position)
            }
        }
        suspects = []
    }
}

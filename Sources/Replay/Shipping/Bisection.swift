// The machine that narrows a refused batch down to the event that is the cause. W3 of
// Spec/protocol/replay.md.

import DequeModule
import Foundation
import LogFormat

/// The search for a refused event.
///
/// | state | next | by |
/// |---|---|---|
/// | nothing is refused | parts | a refused batch of several events |
/// | parts | parts | a part is sent, or is refused and halved again |
/// | parts | nothing is refused | the last part is sent; an interruption (W5 to W8) |
/// | any | suspect | a lone event is refused |
/// | suspect | nothing is refused | another answer counts; nothing is left to send; another lone event is refused; the run ends |
///
/// Parts and a suspect may exist at the same time.
struct Bisection: Sendable {
    enum Input {
        /// A batch was refused.
        case refused([ReplayItem], TransportReply)
        /// The answer to another request counts.
        case succeeded
        /// No other event is left to send.
        case exhausted
        /// W5 to W8: the events of the parts are sent in ordinary batches.
        case interrupted
        /// The run ends: the next one sends the suspect again.
        case runEnded
    }

    enum Effect {
        /// Hold the lane of a suspect.
        case hold(ReplayItem)
        /// Release the lane of a suspect.
        case release(ReplayItem)
        /// Let other lanes go first.
        case deferLane(ReplayItem)
        /// The event is the cause.
        case park(ReplayItem, TransportReply)
        /// The endpoint is the cause.
        case pause(status: Int)
    }

    private struct Suspect {
        var item: ReplayItem
        var reply: TransportReply
    }

    /// The parts of a refused batch that are still to be sent, in order.
    private var parts: Deque<[ReplayItem]> = []
    /// A single event that was refused as malformed. It is parked once another event is accepted.
    private var suspect: Suspect?

    /// Whether parts are to be sent.
    var hasParts: Bool { !parts.isEmpty }

    /// Removes the next part.
    mutating func popPart() -> [ReplayItem]? { parts.popFirst() }

    mutating func handle(_ input: Input) -> [Effect] {
        switch input {
        case .refused(let items, let reply): return narrow(items, reply)
        case .interrupted:
            parts = []
            return []
        case .succeeded: return convict()
        case .exhausted:
            // A sync server sends no HTML, so the endpoint is the likelier cause.
            guard let suspect, suspect.reply.isHTML else { return convict() }
            self.suspect = nil
            return [.release(suspect.item)] + blameEndpoint(suspect.item, suspect.reply)
        case .runEnded:
            defer { suspect = nil }
            return suspect.map { [.release($0.item)] } ?? []
        }
    }

    private mutating func narrow(_ items: [ReplayItem], _ reply: TransportReply) -> [Effect] {
        guard items.count == 1 else {
            let middle = items.count / 2
            parts.prepend(Array(items[middle...]))
            parts.prepend(Array(items[..<middle]))
            return []
        }
        let item = items[0]
        if let suspect, suspect.item.laneID != item.laneID {
            // Single events of two lanes were refused in a row: the endpoint is the likelier cause.
            self.suspect = nil
            return [.release(suspect.item), .deferLane(suspect.item)] + blameEndpoint(item, reply)
        }
        suspect = Suspect(item: item, reply: reply)
        return [.hold(item)]
    }

    private mutating func convict() -> [Effect] {
        defer { suspect = nil }
        return suspect.map { [.park($0.item, $0.reply)] } ?? []
    }

    /// If the event is the cause after all, other events go first the next time and are accepted.
    private mutating func blameEndpoint(_ item: ReplayItem, _ reply: TransportReply) -> [Effect] {
        parts = []
        return [.deferLane(item), .pause(status: reply.status)]
    }
}

// Collects requests that are sent at the same time, and sends them to the bulk endpoint as one. For the run each stays a
// request of its own: it is waited for, refused and recorded without the others. Between RequestTransport and APIClient.
// Spec/protocol/requests.md, REQ-11.

import Foundation
import Synchronization

/// The bulk requests that are being collected or under way.
final class BulkSender: Sendable {
    /// The outcome for one request.
    enum Outcome: Sendable {
        case answered(APIAnswer)
        /// The answer to the bulk request as a whole, which is no verdict on any of its changes.
        case unanswered(APIAnswer)
        /// The request is to be sent by itself.
        case alone
        /// The bulk request said nothing of this one; the run has learned why by another one of it.
        case later(reason: String)
    }

    /// Requests of one kind can be sent together.
    struct Kind: Hashable, Sendable {
        var group: String
        var token: String?
    }

    private struct Member {
        var id: UUID
        var request: BuiltRequest
        /// Takes the outcome; nil for the first one, whose task sends the bulk, and for a cancelled task.
        var continuation: CheckedContinuation<Outcome, any Error>?
    }

    private struct Bulk {
        var members: [Member]
        /// The requests that it takes; nil once it is sent.
        var kind: Kind?
    }

    private struct State {
        var bulks: [Int: Bulk] = [:]
        var lastNumber = 0
        /// The events whose bulk got no answer to each: sent by themselves, they show which of them is the reason. Of
        /// an event that is settled without that the id stays, 16 bytes as long as the transport lives.
        var alone: Set<UUID> = []

        /// The number of a bulk of the kind that takes one more request.
        func bulk(for kind: Kind, _ changesMax: Int) -> Int? {
            bulks.first { $0.value.kind == kind && $0.value.members.count < changesMax }?.key
        }

        mutating func close(_ number: Int) -> [Member] {
            bulks[number]?.kind = nil
            return bulks[number]?.members ?? []
        }
    }

    /// The time without a further request after which a bulk is sent.
    private static let pause = Duration.milliseconds(2)

    let endpoint: BulkEndpoint
    private let state = Mutex(State())

    init(_ endpoint: BulkEndpoint) { self.endpoint = endpoint }

    /// Sends a request, together with others of its kind.
    ///
    /// - Parameters:
    ///   - build: builds the bulk request. If it throws, each request is sent by itself.
    ///   - send: sends the bulk request.
    /// - Throws: what `send` throws, for one request of the bulk; `CancellationError`.
    func send(
        _ request: BuiltRequest, for id: UUID, in kind: Kind, evidence: APIEvidence,
        building build: (APIRequest) throws -> BoundedHTTPRequest,
        by send: (BoundedHTTPRequest) async throws -> APIAnswer
    ) async throws -> Outcome {
        let member = Member(id: id, request: request)
        guard let number = begin(member, kind) else { return try await join(member, kind) }
        var outcomes: [Outcome] = []
        defer { end(number, outcomes) }
        try await waitForOthers(of: number)
        let members = state.withLock { $0.close(number) }
        guard members.count > 1,
            let bulk = try? build(endpoint.request(members.map(\.request)))
        else { return .alone }
        do {
            outcomes = self.outcomes(of: members, in: try await send(bulk), evidence)
        } catch {
            outcomes = later(members)
            throw error
        }
        return outcomes[0]
    }

    /// Begins a bulk with a request.
    ///
    /// - Returns: its number; nil if the request is to join another one, or to be sent by itself.
    private func begin(_ member: Member, _ kind: Kind) -> Int? {
        state.withLock { state in
            guard !state.alone.contains(member.id),
                state.bulk(for: kind, endpoint.changesMax) == nil
            else { return nil }
            state.lastNumber += 1
            state.bulks[state.lastNumber] = Bulk(members: [member], kind: kind)
            return state.lastNumber
        }
    }

    /// Waits for the outcome of a bulk that the task of another request sends.
    private func join(_ member: Member, _ kind: Kind) async throws -> Outcome {
        try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { continuation in
                let outcome = state.withLock { state -> Result<Outcome, any Error>? in
                    guard !Task.isCancelled else { return .failure(CancellationError()) }
                    // The bulk may have been closed, or filled, since it was seen.
                    guard state.alone.remove(member.id) == nil,
                        let number = state.bulk(for: kind, endpoint.changesMax)
                    else { return .success(.alone) }
                    var member = member
                    member.continuation = continuation
                    state.bulks[number]?.members.append(member)
                    return nil
                }
                if let outcome { continuation.resume(with: outcome) }
            }
        } onCancel: {
            leave(member.id)?.resume(throwing: CancellationError())
        }
    }

    /// Removes the continuation of a request, and the request itself from a bulk that is not sent yet. A bulk that the
    /// request has left before has no continuation of it.
    private func leave(_ id: UUID) -> CheckedContinuation<Outcome, any Error>? {
        state.withLock { state in
            for (number, bulk) in state.bulks {
                let index = bulk.members.firstIndex { $0.id == id && $0.continuation != nil }
                guard let index else { continue }
                state.bulks[number]?.members[index].continuation = nil
                if bulk.kind != nil { state.bulks[number]?.members.remove(at: index) }
                return bulk.members[index].continuation
            }
            return nil
        }
    }

    private func waitForOthers(of number: Int) async throws {
        var (before, count) = (0, 1)
        while count > before, count < endpoint.changesMax {
            try await endpoint.sleep(Self.pause)
            before = count
            count = state.withLock { $0.bulks[number]?.members.count ?? 0 }
        }
        try Task.checkCancellation()
    }

    /// Ends a bulk. Without outcomes nothing was sent, and each request is sent by itself.
    private func end(_ number: Int, _ outcomes: [Outcome]) {
        let members = state.withLock { $0.bulks.removeValue(forKey: number)?.members ?? [] }
        for (index, member) in members.enumerated() {
            let outcome = outcomes.isEmpty ? .alone : outcomes[index]
            member.continuation?.resume(returning: outcome)
        }
    }

    /// The outcomes of a bulk that got no answer to each of its requests.
    private func later(_ members: [Member]) -> [Outcome] {
        state.withLock { $0.alone.formUnion(members.map(\.id)) }
        return members.map { _ in .later(reason: "the bulk request that has it was not answered") }
    }

    // MARK: The answer

    /// An outcome for each request of a bulk.
    private func outcomes(
        of members: [Member], in answer: APIAnswer, _ evidence: APIEvidence
    ) -> [Outcome] {
        switch answer.status {
        case 200..<300 where evidence.admits(answer): return outcomes(of: members, in: answer)
        case 400..<500
        where
            (evidence.isFound(in: answer)
            || [400, 409, 410, 412, 413, 415, 422].contains(answer.status))
            && ![401, 403, 408, 425, 429].contains(answer.status):
            // The API has refused all because of one of them, or takes no bulk.
            return members.map { _ in .alone }
        default: return [.unanswered(answer)] + later(members).dropFirst()
        }
    }

    /// An answer that cannot be read is no verdict on any change: by itself each one gets its own, under its key.
    private func outcomes(of members: [Member], in answer: APIAnswer) -> [Outcome] {
        guard let answers = try? endpoint.answers(answer, members.count),
            answers.count == members.count
        else { return members.map { _ in .alone } }
        return zip(members, answers).map { member, answer in
            answer.map(Outcome.answered) ?? later([member])[0]
        }
    }
}

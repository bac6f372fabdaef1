// Collects requests that are sent at the same time, and sends them to the bulk endpoint as one. For the run each stays a
// request of its own: it is waited for, refused and recorded without the others. Between RequestTransport and APIClient.
// Spec/protocol/requests.md, REQ-11.

import Foundation
import Synchronization

/// The bulk requests that are being collected or under way.
final class BulkSender: Sendable {
    /// The result for one request.
    enum Result: Sendable {
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
    }

    private struct Bulk {
        var kind: Kind
        /// The first one's task sends the bulk; the others wait.
        var members: [Member]
    }

    private struct State {
        var bulks: [Int: Bulk] = [:]
        /// The numbers of the bulks that are being collected.
        var open: [Kind: Int] = [:]
        var lastNumber = 0
        var waiting: [UUID: CheckedContinuation<Result, any Error>] = [:]
        /// The events whose bulk got no answer to each: sent by themselves, they show which of them is the reason.
        var alone: Set<UUID> = []

        /// Whether a bulk of the kind is being collected and takes one more request.
        func hasRoom(for kind: Kind, _ changesMax: Int) -> Bool {
            guard let bulk = open[kind].flatMap({ bulks[$0] }) else { return false }
            return bulk.members.count < changesMax
        }
    }

    /// The time without a further request after which a bulk is sent: those of one run come within a millisecond.
    private static let pause = Duration.milliseconds(2)

    let endpoint: BulkEndpoint
    private let state = Mutex(State())

    init(_ endpoint: BulkEndpoint) { self.endpoint = endpoint }

    /// Sends a request, together with others of its kind.
    ///
    /// - Parameter send: sends the bulk request.
    /// - Throws: what `send` throws, for one request of the bulk; `CancellationError`.
    func send(
        _ request: BuiltRequest, for id: UUID, in kind: Kind, evidence: APIEvidence,
        by send: (APIRequest) async throws -> APIAnswer
    ) async throws -> Result {
        let member = Member(id: id, request: request)
        guard let number = begin(member, kind) else { return try await join(member, kind) }
        await waitForOthers(of: number)
        let members = close(number)
        guard members.count > 1 else { return .alone }
        var results = members.map { _ in Result.alone }
        defer {
            for (member, result) in zip(members, results).dropFirst() { resume(member, result) }
        }
        do {
            results = try await exchange(members, evidence, by: send)
        } catch {
            results = later(members)
            throw error
        }
        return results[0]
    }

    /// Begins a bulk with a request.
    ///
    /// - Returns: its number; nil if the request is to join another one, or to be sent by itself.
    private func begin(_ member: Member, _ kind: Kind) -> Int? {
        state.withLock { state in
            guard !state.alone.contains(member.id), !state.hasRoom(for: kind, endpoint.changesMax)
            else { return nil }
            state.lastNumber += 1
            state.bulks[state.lastNumber] = Bulk(kind: kind, members: [member])
            state.open[kind] = state.lastNumber
            return state.lastNumber
        }
    }

    /// Waits for the result of a bulk that the task of another request sends.
    private func join(_ member: Member, _ kind: Kind) async throws -> Result {
        try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { continuation in
                let hasJoined = state.withLock { state in
                    // The bulk may have been closed, or filled, since its room was seen.
                    guard state.alone.remove(member.id) == nil, !Task.isCancelled,
                        state.hasRoom(for: kind, endpoint.changesMax),
                        let number = state.open[kind]
                    else { return false }
                    state.bulks[number]?.members.append(member)
                    state.waiting[member.id] = continuation
                    return true
                }
                if !hasJoined { continuation.resume(returning: .alone) }
            }
        } onCancel: {
            state.withLock { $0.waiting.removeValue(forKey: member.id) }?
                .resume(throwing: CancellationError())
        }
    }

    private func waitForOthers(of number: Int) async {
        var (before, count) = (0, 1)
        while count > before, count < endpoint.changesMax {
            try? await Task.sleep(for: Self.pause)
            before = count
            count = state.withLock { $0.bulks[number]?.members.count ?? 0 }
        }
    }

    private func close(_ number: Int) -> [Member] {
        state.withLock { state in
            guard let bulk = state.bulks.removeValue(forKey: number) else { return [] }
            if state.open[bulk.kind] == number { state.open[bulk.kind] = nil }
            return bulk.members
        }
    }

    private func resume(_ member: Member, _ result: Result) {
        state.withLock { $0.waiting.removeValue(forKey: member.id) }?.resume(returning: result)
    }

    /// The results of a bulk that got no answer to each of its requests.
    private func later(_ members: [Member]) -> [Result] {
        state.withLock { $0.alone.formUnion(members.map(\.id)) }
        return members.map { _ in .later(reason: "the bulk request that has it was not answered") }
    }

    // MARK: The answer

    /// Sends a bulk.
    ///
    /// - Returns: a result for each request.
    private func exchange(
        _ members: [Member], _ evidence: APIEvidence,
        by send: (APIRequest) async throws -> APIAnswer
    ) async throws -> [Result] {
        let request: APIRequest
        do { request = try endpoint.request(members.map(\.request)) } catch {
            return members.map { _ in .alone }
        }
        let answer = try await send(request)
        switch answer.status {
        case 200..<300 where evidence.admits(answer): return results(of: members, in: answer)
        case 400..<500
        where
            (evidence.isFound(in: answer)
            || [400, 409, 410, 412, 413, 422].contains(answer.status))
            && ![401, 403, 408, 425, 429].contains(answer.status):
            // The API has refused all because of one of them, or takes no bulk.
            return members.map { _ in .alone }
        default: return [.unanswered(answer)] + later(members).dropFirst()
        }
    }

    /// An answer that cannot be read is no verdict on any change: by itself each one gets its own, under its key.
    private func results(of members: [Member], in answer: APIAnswer) -> [Result] {
        guard let answers = try? endpoint.answers(answer, members.count),
            answers.count == members.count
        else { return members.map { _ in .alone } }
        return zip(members, answers).map { member, answer in
            answer.map(Result.answered) ?? later([member])[0]
        }
    }
}

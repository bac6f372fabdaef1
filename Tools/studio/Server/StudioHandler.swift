// Which requests are answered, and how: the access rules, the pages, the JSON interface.
// Spec/operations/studio.md, "Access".

import DaybookOffline
import EventSourcing
import Foundation
import Synchronization

/// The handler of all requests.
final class StudioHandler: Sendable {
    /// The key, which every request for anything of the log must have.
    let key: String
    private let api: API
    private let open: (@Sendable () async throws -> EventStore)?
    /// The port, once the server listens.
    private let port = Mutex<UInt16>(0)
    /// The code that can be exchanged for the key once.
    private let code = Mutex<OneTimeCode?>(nil)
    private let queue = DispatchQueue(label: "studio", attributes: .concurrent)

    private struct OneTimeCode {
        var text: String
        /// Called when the code is used or withdrawn.
        var onEnd: @Sendable () -> Void
    }

    init(_ api: API, key: String, open: (@Sendable () async throws -> EventStore)?) {
        self.api = api
        self.key = key
        self.open = open
    }

    func setPort(_ port: UInt16) { self.port.withLock { $0 = port } }

    private static let bodyBytesMax = 64 * 1_024

    // MARK: Access

    /// Decides by the head whether a request is answered. Nothing of its body is read before.
    ///
    /// - Throws: `APIError`.
    func check(_ head: RequestHead) throws(APIError) {
        try checkHost(head)
        guard head.method == "GET" || head.method == "POST" else {
            throw APIError(405, "methodNotAllowed", "only GET and POST are answered")
        }
        if head.method == "POST" { try checkOrigin(head) }
        guard hasKey(head) || Self.isPublic(head) else {
            throw APIError(
                401, "noToken", "open the address that logtool studio printed",
                remedy: "copy the whole address, with its token, into the browser")
        }
        guard head.bodyBytes <= Self.bodyBytesMax else {
            throw APIError(
                413, "tooLarge", "the body has more than \(Self.bodyBytesMax) bytes")
        }
    }

    /// True for the pages, which contain nothing of the log, for the icon that browsers ask for without being
    /// told to, and for the exchange of a code.
    private static func isPublic(_ head: RequestHead) -> Bool {
        head.method == "GET"
            ? head.path == iconPath || StudioPages.page(head.path) != nil
            : head.path == keyPath
    }

    private static let iconPath = "/favicon.ico"
    private static let keyPath = "/api/key"

    private var authority: String { "127.0.0.1:\(port.withLock { $0 })" }

    /// A page of another site whose name was made to resolve to this machine (DNS rebinding) sends its own
    /// name as the host.
    private func checkHost(_ head: RequestHead) throws(APIError) {
        guard head.values("host") == [authority] else {
            throw APIError(421, "wrongHost", "this server answers at \(authority) only")
        }
        // A browser that knows says whether another site asked.
        let sites = head.values("sec-fetch-site")
        guard sites.allSatisfy({ $0 == "same-origin" || $0 == "none" }) || head.path == "/" else {
            throw APIError(403, "crossSite", "another site's page may not ask this server")
        }
    }

    private func checkOrigin(_ head: RequestHead) throws(APIError) {
        guard head.values("origin") == ["http://\(authority)"] else {
            throw APIError(403, "crossSite", "another site's page may not ask this server")
        }
    }

    /// True for a request with the key. A browser adds no such field by itself, as it adds a cookie to requests
    /// for every port of this machine.
    func hasKey(_ head: RequestHead) -> Bool {
        let values = head.values("authorization")
        return values.count == 1 && isEqual(values[0], "Bearer \(key)")
    }

    /// Compares in a time that does not depend on where the texts differ.
    private func isEqual(_ one: String, _ other: String) -> Bool {
        let (one, other) = (Array(one.utf8), Array(other.utf8))
        guard one.count == other.count else { return false }
        return zip(one, other).reduce(UInt8(0)) { $0 | ($1.0 ^ $1.1) } == 0
    }

    // MARK: Codes

    /// Sets the code that can be exchanged for the key once, in place of an earlier one.
    ///
    /// - Parameter onEnd: called when the code is used or withdrawn.
    func setCode(_ text: String, onEnd: @escaping @Sendable () -> Void) {
        withdrawCode()
        code.withLock { $0 = OneTimeCode(text: text, onEnd: onEnd) }
    }

    /// Makes the code, if it has not been used, worthless.
    func withdrawCode() {
        code.withLock { code in
            defer { code = nil }
            return code
        }?.onEnd()
    }

    private func exchange(_ body: [UInt8]) throws(APIError) -> APIReply {
        let given = (try? JSONValue(body.span.bytes)).flatMap { body -> String? in
            if case .object(let members) = body { members["code"]?.stringValue } else { nil }
        }
        let isRight = code.withLock { code in
            given.flatMap { given in code.map { isEqual($0.text, given) } } ?? false
        }
        guard isRight else {
            throw APIError(
                401, "usedCode", "the code was used already, or is too old",
                remedy: "open the address that logtool studio printed")
        }
        withdrawCode()
        return APIReply(.object { $0.appendMember("key", key) })
    }

    // MARK: Replies

    /// Waits for the reply to a request whose head `check` has accepted. Blocks the thread, which must not be one
    /// of those that run tasks.
    func waitForReply(to head: RequestHead, _ body: [UInt8]) -> APIReply {
        final class Result: Sendable {
            let reply = Mutex<APIReply?>(nil)
            let isThere = DispatchSemaphore(value: 0)
        }
        let result = Result()
        Task {
            let reply = await self.reply(to: head, body)
            result.reply.withLock { $0 = reply }
            result.isThere.signal()
        }
        result.isThere.wait()
        return result.reply.withLock { $0 } ?? .noContent
    }

    /// The reply to a request whose head `check` has accepted.
    func reply(to head: RequestHead, _ body: [UInt8]) async -> APIReply {
        do {
            if head.method == "GET" {
                return try await get(head.path, Parameters(query: head.query))
            }
            if head.path == Self.keyPath { return try exchange(body) }
            return try await decide(head.path, body)
        } catch { return APIReply(APIError(error)) }
    }

    private func get(_ path: String, _ parameters: Parameters) async throws -> APIReply {
        if path == Self.iconPath { return .noContent }
        if let page = StudioPages.page(path) {
            return APIReply(contentType: page.contentType, page.bytes)
        }
        let parts = path.split(separator: "/").map { $0.removingPercentEncoding ?? String($0) }
        guard parts.first == "api" else {
            throw APIError.notFound("there is no such page")
        }
        var attempts = 0
        while true {
            do {
                return try await answer(Array(parts.dropFirst()), parameters)
            } catch let error as APIError
                where error.code == APIError.notReady.code && attempts < Self.attemptsMax
            {
                // The fold is a moment behind the index, from which pages get the last position.
                attempts += 1
                try await Task.sleep(for: .milliseconds(50))
            }
        }
    }

    /// The number of further attempts to answer for a position up to which the views are not folded yet.
    private static let attemptsMax = 10

    private func answer(_ path: [String], _ parameters: Parameters) async throws -> APIReply {
        // The answers read the disk, so they do not run on the threads of the tasks.
        try await withCheckedThrowingContinuation { continuation in
            queue.async { [api] in
                continuation.resume(with: Result { try api.answer(path, parameters) })
            }
        }
    }

    // MARK: Decisions

    private func decide(_ path: String, _ body: [UInt8]) async throws -> APIReply {
        guard let open else {
            throw APIError(
                403, "readOnly", "this run of logtool studio only reads",
                remedy: "start it with --write")
        }
        guard case .object(let body)? = try? JSONValue(body.span.bytes),
            let id = body["id"]?.stringValue.flatMap(UUID.init(uuidString:))
        else { throw APIError.badRequest("the body must be a JSON object with an id") }
        let store = try await open()
        do {
            let done = try await decide(path, id, body, Decisions(store))
            try await store.close()
            return APIReply(
                .object {
                    $0.appendMember(
                        "done",
                        list: done.map { done in
                            .object {
                                $0.appendMember("id", done.id.text)
                                $0.appendMember("done", done.done)
                            }
                        })
                })
        } catch {
            try? await store.close()
            throw error
        }
    }

    private func decide(
        _ path: String, _ id: UUID, _ body: [String: JSONValue],
        _ decisions: Decisions
    ) async throws -> [Decisions.Done] {
        do {
            switch path {
            case "/api/outbox/retry": return try await decisions.retry([id])
            case "/api/outbox/discard":
                return try await decisions.discard(
                    [id], withDependents: body["withDependents"] == .bool(true))
            case "/api/outbox/resolve":
                let keep = body["keep"]?.stringValue
                guard keep == "mine" || keep == "theirs" else {
                    throw APIError.badRequest("keep must be mine or theirs")
                }
                return try await decisions.resolve(id, keep == "mine" ? .keepMine : .keepTheirs)
            default: throw APIError.notFound("there is no such address")
            }
        } catch let error as DecisionError {
            var refused = APIError(
                error.code == .notInOutbox ? 404 : 409, "\(error.code)", error.description,
                remedy: error.recoverySuggestion)
            refused.dependents = error.dependents
            throw refused
        }
    }
}

extension Parameters {
    /// Parses the query of an address: a `+` is a space, as forms and `URLSearchParams` write it.
    init(query: String) {
        func decoded(_ text: Substring) -> String {
            let text = text.replacing("+", with: "%20")
            return text.removingPercentEncoding ?? String(text)
        }
        all = query.split(separator: "&").map { part in
            let pair = part.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            return (decoded(pair[0]), pair.count > 1 ? decoded(pair[1]) : "")
        }
    }
}

// Which requests are answered, and how: the access rules, the pages, the JSON interface.
// Spec/operations/studio.md, "Access".

import DaybookOffline
import EventSourcing
import FlyingFox
import Foundation
import Synchronization

/// The handler of all requests.
final class StudioHandler: HTTPHandler {
    let token: String
    private let api: API
    private let open: (@Sendable () async throws -> EventStore)?
    /// The port, once the server listens.
    private let port = Mutex<UInt16>(0)
    private let queue = DispatchQueue(label: "studio", attributes: .concurrent)

    init(
        _ api: API, token: String, open: (@Sendable () async throws -> EventStore)?
    ) {
        self.api = api
        self.token = token
        self.open = open
    }

    func setPort(_ port: UInt16) { self.port.withLock { $0 = port } }

    private static let bodyBytesMax = 64 * 1_024

    func handleRequest(_ request: HTTPRequest) async throws -> HTTPResponse {
        let parameters = Parameters(query: request.target.query(percentEncoded: true))
        do {
            try checkHost(request)
            // Browsers ask for it without being told to.
            if request.path == "/favicon.ico" {
                return HTTPResponse(statusCode: .noContent, headers: Self.headers)
            }
            if request.path == "/", let given = parameters.string("token") {
                return try welcome(given)
            }
            try checkToken(request)
            if request.method == .GET {
                return try await get(request.path, parameters)
            }
            guard request.method == .POST else {
                throw APIError(405, "methodNotAllowed", "only GET and POST are answered")
            }
            try checkOrigin(request)
            return response(to: try await post(request))
        } catch {
            return response(to: APIReply(APIError(error)))
        }
    }

    // MARK: Access

    private var authority: String { "127.0.0.1:\(port.withLock { $0 })" }
    private var cookieName: String { "daybook-studio-\(port.withLock { $0 })" }

    /// A page of another site whose name was made to resolve to this machine (DNS rebinding) sends its own
    /// name as the host.
    private func checkHost(_ request: HTTPRequest) throws(APIError) {
        guard request.headers.values(for: .host) == [authority] else {
            throw APIError(421, "wrongHost", "this server answers at \(authority) only")
        }
        // A browser that knows says whether another site asked.
        let site = request.headers[HTTPHeader("Sec-Fetch-Site")]
        guard site == nil || site == "same-origin" || site == "none" || request.path == "/" else {
            throw APIError(403, "crossSite", "another site's page may not ask this server")
        }
    }

    private func checkOrigin(_ request: HTTPRequest) throws(APIError) {
        guard request.headers[HTTPHeader("Origin")] == "http://\(authority)" else {
            throw APIError(403, "crossSite", "another site's page may not ask this server")
        }
    }

    private func checkToken(_ request: HTTPRequest) throws(APIError) {
        let cookies = (request.headers[.cookie] ?? "").split(separator: ";").map {
            $0.trimmingCharacters(in: .whitespaces)
        }
        guard cookies.contains(where: { isEqual($0, "\(cookieName)=\(token)") }) else {
            throw APIError(
                401, "noToken", "open the address that logtool studio printed",
                remedy: "copy the whole address, with its token, into the browser")
        }
    }

    /// Compares in a time that does not depend on where the texts differ.
    private func isEqual(_ one: String, _ other: String) -> Bool {
        let (one, other) = (Array(one.utf8), Array(other.utf8))
        guard one.count == other.count else { return false }
        return zip(one, other).reduce(UInt8(0)) { $0 | ($1.0 ^ $1.1) } == 0
    }

    /// Exchanges the token in the address for a cookie, so that the address bar and the history have none.
    private func welcome(_ given: String) throws(APIError) -> HTTPResponse {
        guard isEqual(given, token) else {
            throw APIError(
                401, "noToken", "the token is not that of this run of logtool studio",
                remedy: "open the address that logtool studio printed last")
        }
        var response = HTTPResponse(statusCode: .seeOther, headers: Self.headers)
        response.headers[.location] = "/"
        response.headers[.setCookie] =
            "\(cookieName)=\(token); Path=/; HttpOnly; SameSite=Strict"
        return response
    }

    private static let headers: FlyingFox.HTTPHeaders = [
        HTTPHeader("Content-Security-Policy"):
            "default-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; object-src 'none'",
        HTTPHeader("Cross-Origin-Opener-Policy"): "same-origin",
        HTTPHeader("Cross-Origin-Resource-Policy"): "same-origin",
        HTTPHeader("Referrer-Policy"): "no-referrer",
        HTTPHeader("X-Content-Type-Options"): "nosniff",
        HTTPHeader("X-Frame-Options"): "DENY",
        .cacheControl: "no-store",
    ]

    // MARK: Replies

    private func get(_ path: String, _ parameters: Parameters) async throws -> HTTPResponse {
        if let page = StudioPages.page(path) {
            return response(contentType: page.contentType, body: Data(page.bytes))
        }
        let parts = path.split(separator: "/").map { $0.removingPercentEncoding ?? String($0) }
        guard parts.first == "api" else {
            throw APIError.notFound("there is no such page")
        }
        var attempts = 0
        while true {
            do {
                return response(to: try await answer(Array(parts.dropFirst()), parameters))
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

    private func response(to reply: APIReply) -> HTTPResponse {
        var response = response(contentType: reply.contentType, body: Data(reply.body))
        response.statusCode = HTTPStatusCode(reply.status, phrase: "")
        if let name = reply.fileName {
            response.headers[.contentDisposition] = "attachment; filename=\"\(name)\""
        }
        return response
    }

    private func response(contentType: String, body: Data) -> HTTPResponse {
        var response = HTTPResponse(
            statusCode: .ok, headers: Self.headers,
            body: HTTPBodySequence(data: body, suggestedBufferSize: 256 * 1_024))
        response.headers[.contentType] = contentType
        return response
    }

    // MARK: Decisions

    private func post(_ request: HTTPRequest) async throws -> APIReply {
        guard let open else {
            throw APIError(
                403, "readOnly", "this run of logtool studio only reads",
                remedy: "start it with --write")
        }
        guard (request.bodySequence.count ?? .max) <= Self.bodyBytesMax,
            case .object(let body)? = try? EventSourcing.JSONValue(
                Array(try await request.bodyData).span.bytes),
            let id = body["id"]?.stringValue.flatMap(UUID.init(uuidString:))
        else { throw APIError.badRequest("the body must be a JSON object with an id") }
        let store = try await open()
        do {
            let done = try await decide(request.path, id, body, Decisions(store))
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
        _ path: String, _ id: UUID, _ body: [String: EventSourcing.JSONValue],
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

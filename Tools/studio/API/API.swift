// The JSON interface: which question is answered by which function. Spec/operations/studio.md.

import DaybookOffline
import EventSourcing
import Foundation
import LogFormat
import LogStorage
import Synchronization

/// A reply.
struct APIReply: Sendable {
    var status = 200
    var contentType = "application/json"
    var body: [UInt8]
    /// The name under which a browser saves the body.
    var fileName: String?

    init(_ writer: JSONObjectWriter) { body = writer.finished() }

    init(contentType: String, fileName: String? = nil, _ body: [UInt8]) {
        self.contentType = contentType
        self.fileName = fileName
        self.body = body
    }

    init(_ error: APIError) {
        status = error.status
        body = error.json
    }

    /// A reply without a body.
    static let noContent: APIReply = {
        var reply = APIReply(contentType: "", [])
        reply.status = 204
        return reply
    }()
}

/// The answers to questions about one log.
final class API: Sendable {
    let log: FollowedLog
    let views: ViewTimeline
    let selections: Selections
    let isWritable: Bool
    /// The part of the overview that is computed from the index, and its version.
    let cachedCounts = Mutex((version: [Int](), json: [UInt8]()))

    init(_ log: FollowedLog, isWritable: Bool) {
        self.log = log
        self.isWritable = isWritable
        views = ViewTimeline(log)
        selections = Selections(log)
    }

    /// Answers a GET request.
    ///
    /// - Parameter path: the path after `/api/`, in parts.
    /// - Throws: `APIError`; `LogError`, `wrongAccount` for anything but the overview.
    func answer(_ path: [String], _ parameters: Parameters) throws -> APIReply {
        // The overview says whose log it is.
        if path != ["log"] { try log.checkAccount() }
        return switch (path.first, path.count) {
        case ("log", 1): APIReply(try overview())
        case ("events", 1): APIReply(try events(parameters))
        case ("rank", 1): APIReply(try rank(parameters))
        case ("histogram", 1): APIReply(try histogram(parameters))
        case ("events", 2): APIReply(try event(at: position(path[1])))
        case ("events", 3) where path[2] == "story": APIReply(try story(at: position(path[1])))
        case ("find", 1): APIReply(try find(parameters))
        case ("views", 1): APIReply(try listViews())
        case ("views", 2): APIReply(try view(path[1], parameters))
        case ("views", 3) where path[2] == "marks": APIReply(try marks(path[1], parameters))
        case ("views", 3) where path[2] == "step": APIReply(try step(path[1], parameters))
        case ("views", 3) where path[2] == "changes": APIReply(try changes(path[1], parameters))
        case ("outbox", 1): APIReply(try outbox())
        case ("outbox", 2) where path[1] == "dependents": APIReply(try dependents(parameters))
        case ("files", 1): APIReply(try files())
        case ("files", 2): APIReply(try segment(path[1]))
        case ("compaction", 1): APIReply(try compaction())
        case ("verify", 1): APIReply(try verify())
        case ("export", 1): try export(parameters)
        default: throw APIError.notFound("there is no such address")
        }
    }

    private func position(_ text: String) throws(APIError) -> Position {
        guard let number = UInt64(text), number > 0, number <= FormatLimit.positionMax else {
            throw .badRequest("\(text) is not a position")
        }
        return Position(number)
    }
}

// Where lessons and review sessions come from: what an app brings, or a server by a protocol of ours.
// Asked by LearningDownloads, which checks what comes. Spec/model/learning.md, LRN-30, LRN-40.

import Daybook
import Foundation

/// Where review sessions and lessons come from. An app with a protocol of its own brings its own.
///
/// All methods throw `DownloadError` with `unavailable` to be asked again later, with any other code
/// to give it up. Any other error is one of the connection: it is asked again.
public protocol LearningSource: Sendable {
    /// The review sessions of a user that come next, the next one first; at most `count`.
    func reviews(
        of userId: String, _ combination: LanguageCombination, first count: Int
    ) async throws -> [ReviewSession]

    /// The content of a lesson.
    func lesson(
        _ lessonId: String, course courseId: String, _ combination: LanguageCombination
    ) async throws -> LearningUnit

    /// A file that belongs to a lesson or a session.
    ///
    /// - Parameters:
    ///   - url: what the unit calls it.
    ///   - bytesMax: a longer one is refused (`DownloadError`, `tooLarge`).
    func file(_ url: String, bytesMax: Int) async throws -> [UInt8]
}

/// What a lesson or a review session consists of, before its files are fetched.
public struct LearningUnit: Hashable, Sendable {
    /// The text of a JSON object, kept as it is.
    public var content: [UInt8]
    /// The files that go with it, each once.
    public var files: [String]

    /// Most files of a lesson or a session.
    public static let filesMax = 1_000

    /// Creates a unit.
    public init(content: [UInt8], files: [String] = []) {
        self.content = content
        self.files = files
    }

    init(_ fields: JSONFields) throws(EventError) {
        content = try fields.required(fields.raw("content"), "content")
        files = try fields.identifiers("files") ?? []
    }
}

/// A review session as a source gives it.
public struct ReviewSession: Hashable, Sendable {
    /// The session.
    public var reviewId: String
    /// The course, if it belongs to one.
    public var courseId: String?
    /// What it consists of.
    public var unit: LearningUnit

    /// Creates a session.
    public init(reviewId: String, courseId: String? = nil, unit: LearningUnit) {
        self.reviewId = reviewId
        self.courseId = courseId
        self.unit = unit
    }
}

/// The wire protocol of learning material.
struct HTTPLearningSource: LearningSource {
    let base: URL
    let authorizer: Authorizer

    /// Bytes of an answer about sessions that are read at most: each must fit an event.
    static let sessionsBytesMax = 8 * 1_048_576

    func reviews(
        of userId: String, _ combination: LanguageCombination, first count: Int
    ) async throws -> [ReviewSession] {
        let url = try ServerAddress.url(
            ["users", userId, "reviews"], query: Self.query(combination) + [("first", "\(count)")],
            of: base, "the user's id")
        let what = "the review sessions"
        let json = try await get(url, "application/json", Self.sessionsBytesMax, what)
        return try Self.valid(what) { () throws(EventError) in
            let fields = try JSONFields(json)
            var sessions: [ReviewSession] = []
            for session in try fields.required(try fields.objects("reviews"), "reviews") {
                sessions.append(
                    ReviewSession(
                        reviewId: try session.identifier("id"),
                        courseId: session.raw("courseId") == nil
                            ? nil : try session.identifier("courseId"),
                        unit: try LearningUnit(session)))
            }
            return sessions
        }
    }

    func lesson(
        _ lessonId: String, course courseId: String, _ combination: LanguageCombination
    ) async throws -> LearningUnit {
        let url = try ServerAddress.url(
            ["courses", courseId, "lessons", lessonId], query: Self.query(combination), of: base,
            "the lesson's id")
        let what = "the lesson \(lessonId)"
        let json = try await get(url, "application/json", HTTPManifestSource.bytesMax, what)
        return try Self.valid(what) { () throws(EventError) in
            try LearningUnit(try JSONFields(json))
        }
    }

    func file(_ url: String, bytesMax: Int) async throws -> [UInt8] {
        guard let url = URL(string: url, relativeTo: base)?.absoluteURL,
            CityManifest.isFetchable(url)
        else { throw DownloadError(.badManifest, "a file's url is not one of http or https") }
        return try await get(url, "*/*", bytesMax, "a file")
    }

    private static func query(_ combination: LanguageCombination) -> [(String, String)] {
        [
            ("learnLanguage", combination.learnLanguage),
            ("displayLanguage", combination.displayLanguage),
        ]
    }

    private func get(
        _ url: URL, _ accept: String, _ bytesMax: Int, _ what: String
    ) async throws -> [UInt8] {
        var request = BoundedHTTPRequest(url)
        request.set("Accept", accept)
        let body = GatheredBody(bytesMax: bytesMax)
        let head = try await authorizer.send(request, to: body)
        if let retryError = head.retryError { throw retryError }
        guard head.status == 200 else { throw Authorizer.refusal(head, what) }
        guard let bytes = body.bytes else {
            throw DownloadError(.tooLarge, "\(what): more than \(bytesMax) bytes")
        }
        guard head.isPlain else {
            throw DownloadError(.wrongContent, "\(what): the server packs what it sends")
        }
        if let expected = ContentDigest.sha256(head), expected != FileID(of: bytes) {
            throw DownloadError(.wrongContent, "\(what): the checksum is wrong")
        }
        return bytes
    }

    private static func valid<T>(
        _ what: String, _ body: () throws(EventError) -> T
    ) throws(DownloadError) -> T {
        do throws(EventError) { return try body() } catch {
            throw DownloadError(.badManifest, "\(what): \(error.detail)")
        }
    }
}

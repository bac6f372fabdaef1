// The sources of lessons and review sessions: a protocol that an app implements, and its implementation for
// a server. LearningDownloads calls it and checks the results. Spec/model/learning.md, LRN-30, LRN-40.

import Daybook
import Foundation

/// A source of review sessions and lessons. An app with a protocol of its own implements one.
///
/// All methods throw `DownloadError` with `unavailable` for a later retry, with any other code to fail
/// permanently. Any other error counts as one of the connection and is retried.
public protocol LearningSource: Sendable {
    /// Returns the next review sessions of a user in their order, at most `count`.
    func reviews(
        of userId: String, _ combination: LanguageCombination, first count: Int
    ) async throws -> [ReviewSession]

    /// Returns a lesson's content.
    func lesson(
        _ lessonId: String, course courseId: String, _ combination: LanguageCombination
    ) async throws -> LearningUnit

    /// Returns the content of a file of a lesson or a session.
    ///
    /// - Parameters:
    ///   - url: the file's name in the unit.
    ///   - bytesMax: the limit; a longer file is refused (`DownloadError`, `tooLarge`).
    func file(_ url: String, bytesMax: Int) async throws -> [UInt8]
}

extension LearningSource {
    /// Whether an error concerns only the session that was fetched. If a later request may succeed, or the token is
    /// rejected, that is so if the source answers a request for sessions.
    ///
    /// - Throws: `CancellationError`.
    func hasFailedForOneSession(
        _ error: any Error, of userId: String, _ combination: LanguageCombination
    ) async throws -> Bool {
        try Task.checkCancellation()
        switch error {
        case is EventError: return true
        case is LearningError, is LogError, is FileStoreError: return false
        case let error as DownloadError:
            switch error.code {
            case .refused, .wrongContent, .badManifest, .tooLarge: return true
            case .noSpace, .io: return false
            case .unavailable, .unauthorized: break
            }
        default: break
        }
        do { _ = try await reviews(of: userId, combination, first: 1) } catch {
            try Task.checkCancellation()
            return false
        }
        return true
    }
}

/// A lesson or a review session before its files are fetched.
public struct LearningUnit: Hashable, Sendable {
    /// The text of a JSON object, stored unchanged.
    public var content: [UInt8]
    /// The names of its files, without duplicates.
    public var files: [String]
    /// The fault of a unit that could not be read: it is reported, and the others of the answer are stored.
    var fault: DownloadError?

    /// The greatest number of files of a lesson or a session.
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

/// A review session from a source.
public struct ReviewSession: Hashable, Sendable {
    /// The session's id.
    public var reviewId: String
    /// The id of the session's course, if it has one.
    public var courseId: String?
    /// The session's content and files.
    public var unit: LearningUnit

    /// Creates a session.
    public init(reviewId: String, courseId: String? = nil, unit: LearningUnit) {
        self.reviewId = reviewId
        self.courseId = courseId
        self.unit = unit
    }
}

/// A source over HTTP, with the wire protocol of learning material.
struct HTTPLearningSource: LearningSource {
    let base: URL
    let authorizer: Authorizer

    /// The greatest size of a response with sessions, in bytes.
    static let sessionsBytesMax = 8 * 1_048_576

    func reviews(
        of userId: String, _ combination: LanguageCombination, first count: Int
    ) async throws -> [ReviewSession] {
        let url = try ServerAddress.url(
            ["users", userId, "reviews"], query: Self.query(combination) + [("first", "\(count)")],
            of: base, "the user's id")
        let subject = "the review sessions"
        let json = try await authorizer.body(
            of: url, .object, bytesMax: Self.sessionsBytesMax, subject)
        return try Self.valid(subject) { () throws(EventError) in
            let fields = try JSONFields(json)
            var sessions: [ReviewSession] = []
            for session in try fields.objectsAlone("reviews") {
                sessions.append(Self.session(session, subject))
            }
            return sessions
        }
    }

    /// The session in an element of an answer. If it cannot be read, its unit has the fault, and its id is empty
    /// if that is not known.
    private static func session(
        _ element: Result<JSONFields, EventError>, _ subject: String
    ) -> ReviewSession {
        do throws(EventError) {
            let fields = try element.get()
            return ReviewSession(
                reviewId: try fields.identifier("id"),
                courseId: fields.raw("courseId") == nil
                    ? nil : try fields.identifier("courseId"),
                unit: try LearningUnit(fields))
        } catch {
            var unit = LearningUnit(content: [])
            unit.fault = DownloadError(.badManifest, "\(subject): \(error.detail)")
            let id = try? element.get().identifier("id")
            return ReviewSession(reviewId: id ?? "", unit: unit)
        }
    }

    func lesson(
        _ lessonId: String, course courseId: String, _ combination: LanguageCombination
    ) async throws -> LearningUnit {
        let url = try ServerAddress.url(
            ["courses", courseId, "lessons", lessonId], query: Self.query(combination), of: base,
            "the lesson's id")
        let subject = "the lesson \(lessonId)"
        let json = try await authorizer.body(
            of: url, .object, bytesMax: HTTPManifestSource.bytesMax, subject)
        return try Self.valid(subject) { () throws(EventError) in
            try LearningUnit(try JSONFields(json))
        }
    }

    func file(_ url: String, bytesMax: Int) async throws -> [UInt8] {
        guard let url = URL(string: url, relativeTo: base)?.absoluteURL,
            CityManifest.isFetchable(url)
        else { throw DownloadError(.badManifest, "a file's url is not one of http or https") }
        return try await authorizer.body(of: url, .file, bytesMax: bytesMax, "a file")
    }

    private static func query(_ combination: LanguageCombination) -> [(String, String)] {
        [
            ("learnLanguage", combination.learnLanguage),
            ("displayLanguage", combination.displayLanguage),
        ]
    }

    private static func valid<T>(
        _ subject: String, _ body: () throws(EventError) -> T
    ) throws(DownloadError) -> T {
        do throws(EventError) { return try body() } catch {
            throw DownloadError(.badManifest, "\(subject): \(error.detail)")
        }
    }
}

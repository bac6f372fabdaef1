// The commands of an app on learning content: store a server's content, read it, remove it. See also
// LearningQueries; LearningDownloads downloads automatically. Spec/model/learning.md.

import Daybook
import Foundation

/// A file of a lesson or a review session with its bytes, to be stored.
public struct LearningFileContent: Hashable, Sendable {
    /// The URL by which the content refers to it.
    public var url: String
    /// Its bytes.
    public var content: [UInt8]

    /// Creates a file.
    public init(url: String, content: [UInt8]) {
        self.url = url
        self.content = content
    }
}

/// Commands and queries on learning content: users, courses, lessons, review sessions and vocabularies.
///
/// No event of these commands is shipped. `OfflineStore.progress` records the learner's progress.
public struct LearningCommands: Sendable {
    let store: EventStore
    let files: FileStore
    private let references: ReferenceCheck?

    init(_ store: EventStore, _ files: FileStore, _ references: ReferenceCheck? = nil) {
        self.store = store
        self.files = files
        self.references = references
    }

    // MARK: Users and courses

    /// Stores the data of a user; unchanged data is not recorded again. Durable on return.
    ///
    /// - Parameters:
    ///   - userId: the user.
    ///   - info: the text of a JSON object, kept as it is; nil for the id alone.
    /// - Throws: `EventError` (`invalidData`) for an empty id or an `info` that is no JSON object;
    ///   `tooLarge` for more than 1 MiB; `LogError` as `EventStore.append`.
    public func storeUser(_ userId: String, info: [UInt8]? = nil) async throws {
        // `info` is inserted as raw text: anything else than one object would change the event.
        if let info { _ = try JSONFields(info, path: "info") }
        let stored = UserStored(userId: userId, info: info)
        guard try await nilIfLost({ try await user(userId) }) != stored else { return }
        try await store.write { transaction in
            let lwwTimestamp = transaction.view(LearningView.self).learner(userId)?.info?
                .lwwTimestamp
            try transaction.append(stored, replacing: lwwTimestamp)
        }
    }

    /// The data of a user, from the log; nil if none was stored.
    ///
    /// - Throws: `LogError`, `corrupt` if the log has lost the event that contains it.
    /// - Complexity: one frame to read.
    public func user(_ userId: String) async throws -> UserStored? {
        try await read(UserStored.self) { $0.learner(userId)?.info?.value }
    }

    /// Selects the languages that a user learns; an unchanged choice is not recorded again. Durable on
    /// return.
    ///
    /// - Throws: `EventError` (`invalidData`) for an empty id or language; `LogError` as
    ///   `EventStore.append`.
    public func selectCombination(
        _ combination: LanguageCombination, for userId: String
    ) async throws {
        try await store.write { transaction in
            let known = transaction.view(LearningView.self).learner(userId)?.combination
            guard known?.value != combination else { return }
            try transaction.append(
                CombinationSelected(userId: userId, combination: combination),
                replacing: known?.lwwTimestamp)
        }
    }

    /// Stores the courses of a language combination with their lessons, without the lessons'
    /// contents; an unchanged list is not recorded again. Durable on return.
    ///
    /// - Returns: the courses that could not be stored, each with its location and the reason: an empty id, an
    ///   id that occurs before, an invalid lesson. All others are stored. Of a course that could not be stored the
    ///   stored version stays in the list; if its id is empty, all stored courses stay.
    /// - Throws: `EventError` for a list of which no course can be stored, and (`tooLarge`) for one of more
    ///   than 1 MiB: the stored list stays; `LogError` as `EventStore.append`.
    /// - Complexity: O(lessons).
    @discardableResult
    public func storeCourses(
        _ courses: [ListedCourse], of combination: LanguageCombination
    ) async throws -> [ListFault] {
        let storable = try StorableElements(of: courses, "courses", id: \.id) {
            CoursesListed(combination: combination, courses: [$0])
        }
        try await store.write { transaction in
            let view = transaction.view(LearningView.self)
            let known = view.courses(of: combination)
            let listed = CoursesListed(
                combination: combination, courses: storable.keeping(known ?? [], id: \.id))
            if let known,
                try CoursesListed(combination: combination, courses: known).json() == listed.json()
            {
                return
            }
            try transaction.append(listed, replacing: view.coursesTimestamp(combination))
        }
        return storable.leftOut
    }

    // MARK: Lessons

    /// Stores a lesson that the app has fetched itself. Durable on return, files included. After an error
    /// the stored lesson is unchanged.
    ///
    /// - Parameters:
    ///   - lessonId: the lesson.
    ///   - courseId: its course.
    ///   - content: the text of a JSON object, kept as it is.
    ///   - files: its files; the URLs differ.
    ///   - isExplicit: whether the user asked for it. An explicit lesson stays explicit.
    /// - Throws: `EventError` (`invalidData`) for an empty id, content that is no JSON object, an empty
    ///   or duplicate URL, or a file that is empty, or a web page although its URL asks for none; `tooLarge` for content of more than 1 MiB; `unknownReference` for a course or a
    ///   lesson that the `ReferenceCheck` does not know; `refused` if the lesson was removed at the same
    ///   time; `FileStoreError`; `LogError` as `EventStore.append`.
    @discardableResult
    public func storeLesson(
        _ lessonId: String, course courseId: String, content: [UInt8],
        files: [LearningFileContent] = [], isExplicit: Bool
    ) async throws -> StoredLesson {
        try await storingFiles(files) { files in
            try await recordLesson(
                lessonId, course: courseId,
                LearningMaterial(content: content, files: files, isExplicit: isExplicit))
        }
    }

    /// Records a lesson whose files are stored and retained.
    func recordLesson(
        _ lessonId: String, course courseId: String, _ material: LearningMaterial
    ) async throws -> StoredLesson {
        _ = try JSONFields(material.content, path: "content")
        try await files.requireRetained(material.files.map(\.file))
        try await store.write { transaction in
            let view = transaction.view(LearningView.self)
            try references?.require(.course(courseId, learner: nil), transaction)
            try references?.require(
                .lesson(lessonId, course: courseId, learner: nil), transaction)
            var stored = LessonStored(courseId: courseId, lessonId: lessonId, material: material)
            if view.lesson(lessonId, course: courseId)?.material.isExplicit ?? false {
                stored.material.isExplicit = true
            }
            try transaction.append(
                stored, replacing: view.lwwTimestamp(ofLesson: lessonId, course: courseId))
        }
        guard let stored = store.view(LearningView.self).lesson(lessonId, course: courseId) else {
            throw EventError(.refused, "the lesson \(lessonId) was removed while it was stored")
        }
        return stored
    }

    /// The content of a lesson and its files, from the log; nil if it is not on the device.
    ///
    /// - Throws: `LogError`, `corrupt` if the log has lost the event that contains it.
    /// - Complexity: one frame to read.
    public func readLesson(
        _ lessonId: String, course courseId: String
    ) async throws -> LearningMaterial? {
        try await read(LessonStored.self) {
            $0.lesson(lessonId, course: courseId)?.material.event
        }?.material
    }

    /// Removes a lesson from the device, with the files that nothing else names. The learner's progress
    /// stays. Durable on return.
    ///
    /// - Throws: `EventError` (`refused`) for a lesson that is not on the device; `LogError` as
    ///   `EventStore.append`; `FileStoreError` for a file that could not be deleted, with the removal
    ///   recorded: `FileStore.collect()` tries again.
    public func removeLesson(_ lessonId: String, course courseId: String) async throws {
        try await store.write(drawingOnReserve: true) { transaction in
            let view = transaction.view(LearningView.self)
            guard view.lesson(lessonId, course: courseId) != nil else {
                throw EventError(
                    .refused, "the lesson \(lessonId) of \(courseId) is not on the device")
            }
            try transaction.append(
                LessonRemoved(courseId: courseId, lessonId: lessonId),
                replacing: view.lwwTimestamp(ofLesson: lessonId, course: courseId))
        }
        try await files.collect()
    }

    // MARK: Review sessions

    /// Stores a review session that the app has fetched itself. Durable on return, files included. After
    /// an error the stored session is unchanged.
    ///
    /// - Parameters:
    ///   - reviewId: the session.
    ///   - userId: its learner.
    ///   - combination: its languages.
    ///   - courseId: the course, if it belongs to one.
    ///   - order: its index among the learner's next sessions, from 0.
    ///   - content: the text of a JSON object, kept as it is.
    ///   - files: its files; the URLs differ.
    ///   - isExplicit: whether the user asked for it. An explicit session stays explicit.
    /// - Throws: as `storeLesson`; `invalidData` for an order below 0, too.
    @discardableResult
    public func storeReview(
        _ reviewId: String, of userId: String, in combination: LanguageCombination,
        course courseId: String? = nil, order: Int, content: [UInt8],
        files: [LearningFileContent] = [], isExplicit: Bool
    ) async throws -> StoredReview {
        try await storingFiles(files) { files in
            try await recordReview(
                ReviewStored(
                    userId: userId, reviewId: reviewId, combination: combination,
                    courseId: courseId, order: order,
                    material: LearningMaterial(
                        content: content, files: files, isExplicit: isExplicit)))
        }
    }

    /// Records a review session whose files are stored and retained.
    func recordReview(_ review: ReviewStored) async throws -> StoredReview {
        _ = try JSONFields(review.material.content, path: "content")
        try await files.requireRetained(review.material.files.map(\.file))
        try await store.write { transaction in
            let view = transaction.view(LearningView.self)
            if let courseId = review.courseId {
                try references?.require(.course(courseId, learner: review.userId), transaction)
            }
            var review = review
            if view.review(review.reviewId, of: review.userId)?.material.isExplicit ?? false {
                review.material.isExplicit = true
            }
            try transaction.append(
                review, replacing: view.lwwTimestamp(ofReview: review.reviewId, of: review.userId))
        }
        let view = store.view(LearningView.self)
        guard let stored = view.review(review.reviewId, of: review.userId) else {
            throw EventError(
                .refused, "the review session \(review.reviewId) was removed while it was stored")
        }
        return stored
    }

    /// The content of a review session and its files, from the log; nil if it is not on the device.
    ///
    /// - Throws: `EventError` (`refused`) while the user's sessions are downloaded, because no session may
    ///   be started then (LRN-35). Otherwise as `readLesson`.
    /// - Complexity: one frame to read.
    public func readReview(
        _ reviewId: String, of userId: String
    ) async throws -> LearningMaterial? {
        try requireNoReviewDownload(for: userId)
        let material = try await read(ReviewStored.self) {
            $0.review(reviewId, of: userId)?.material.event
        }?.material
        // A download may have started during the read.
        try requireNoReviewDownload(for: userId)
        return material
    }

    private func requireNoReviewDownload(for userId: String) throws {
        guard store.transient(ReviewDownloads.self)[userId] == nil else {
            throw EventError(
                .refused,
                "review sessions of \(userId) are being downloaded; start one afterwards")
        }
    }

    /// Removes a review session from the device, with the files that nothing else names. The learner's
    /// progress stays. Durable on return.
    ///
    /// - Throws: as `removeLesson`.
    public func removeReview(_ reviewId: String, of userId: String) async throws {
        try await store.write(drawingOnReserve: true) { transaction in
            let view = transaction.view(LearningView.self)
            guard view.review(reviewId, of: userId) != nil else {
                throw EventError(
                    .refused, "the review session \(reviewId) is not on the device")
            }
            try transaction.append(
                ReviewRemoved(userId: userId, reviewId: reviewId),
                replacing: view.lwwTimestamp(ofReview: reviewId, of: userId))
        }
        try await files.collect()
    }

    /// Removes a user's sessions in a combination that are not in `next` and that are not explicit or
    /// are completed. Durable on return.
    func removeReviews(
        of userId: String, in combination: LanguageCombination, except next: [String]
    ) async throws {
        let next = Set(next.map(EntityID.init))
        try await store.write(drawingOnReserve: true) { transaction in
            let view = transaction.view(LearningView.self)
            let progress = transaction.view(ProgressView.self)
            for review in view.reviews(of: userId, combination)
            where !next.contains(EntityID(review.reviewId))
                && (!review.material.isExplicit
                    || progress.hasCompleted(review: review.reviewId, by: userId))
            {
                try transaction.append(
                    ReviewRemoved(userId: userId, reviewId: review.reviewId),
                    replacing: view.lwwTimestamp(ofReview: review.reviewId, of: userId))
            }
        }
        // The removal is recorded: the next collection deletes what this one cannot.
        _ = try? await files.collect()
    }

    // MARK: Vocabulary

    /// Caches a user's vocabulary. An app calls it when the user opens the review manager. Of several items
    /// with one id the first is kept, and of more than 200 items the first 200. An unchanged vocabulary is
    /// not recorded again. Durable on return.
    ///
    /// - Throws: `EventError` (`invalidData`) for an empty id; `tooLarge` for more than 1 MiB; `LogError`
    ///   as `EventStore.append`.
    /// - Returns: the number of cached items.
    @discardableResult
    public func cacheVocabulary(
        _ items: some Sequence<VocabularyItem>, of userId: String,
        in combination: LanguageCombination
    ) async throws -> Int {
        var ids: Set<EntityID> = []
        let unique = items.lazy.filter { ids.insert(EntityID($0.id)).inserted }
        let cached = VocabularyCached(
            userId: userId, combination: combination,
            items: Array(unique.prefix(VocabularyCached.itemsMax)))
        let known = try await nilIfLost { try await vocabulary(of: userId, in: combination) }
        guard known != cached.items else { return cached.items.count }
        try await store.write { transaction in
            let lwwTimestamp = transaction.view(LearningView.self).vocabularyTimestamp(
                of: userId, combination)
            try transaction.append(cached, replacing: lwwTimestamp)
        }
        return cached.items.count
    }

    /// A user's vocabulary, from the log, in its stored order; nil if none was ever cached.
    ///
    /// - Throws: `LogError`, `corrupt` if the log has lost the event that contains it.
    /// - Complexity: one frame to read.
    public func vocabulary(
        of userId: String, in combination: LanguageCombination
    ) async throws -> [VocabularyItem]? {
        try await read(VocabularyCached.self) {
            $0.vocabulary(of: userId, combination)?.value.event
        }?.items
    }

    // MARK: Files and events

    /// Stores files, calls `record` with them, and deletes files that are no longer needed.
    private func storingFiles<Result: Sendable>(
        _ contents: [LearningFileContent], record: ([LearningFile]) async throws -> Result
    ) async throws -> Result {
        var stored: [LearningFile] = []
        do {
            for file in contents {
                if let fault = WebPage.fault(of: file.content, at: file.url) {
                    throw EventError(.invalidData, "the file \(file.url) \(fault)")
                }
                stored.append(
                    LearningFile(
                        url: file.url, file: try await files.storeRetained(file.content),
                        size: file.content.count))
            }
            let result = try await record(stored)
            await release(stored)
            return result
        } catch {
            await release(stored)
            throw error
        }
    }

    /// Releases held files. Files that no event names are deleted by this collection or, if it fails, by
    /// the next one.
    func release(_ held: [LearningFile]) async {
        await files.release(held.map(\.file))
        _ = try? await files.collect()
    }

    /// A value from the log; nil if the log has lost its event.
    private func nilIfLost<Value>(_ read: () async throws -> Value?) async throws -> Value? {
        do { return try await read() } catch let error as LogError where error.code == .corrupt {
            return nil
        }
    }

    /// Reads the payload of the event that the view names.
    private func read<Payload: EventPayload>(
        _ type: Payload.Type, _ find: @Sendable (LearningView) -> UUID?
    ) async throws -> Payload? {
        try await store.named(type, by: { find(store.view(LearningView.self)) }, event: \.self)?
            .payload
    }
}

/// The number of running downloads of review sessions in this process, by user (LRN-35).
enum ReviewDownloads: TransientState {
    typealias Key = String
    typealias Value = Int
}

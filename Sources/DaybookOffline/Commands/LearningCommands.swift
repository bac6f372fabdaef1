// What an app does with what it keeps for learning without a network: store what a server gave, read
// it, remove it. Beside it: LearningQueries; LearningDownloads fetches by itself. Spec/model/learning.md.

import Daybook
import Foundation

/// A file of a lesson or a review session with its bytes, to be stored.
public struct LearningFileContent: Hashable, Sendable {
    /// What the content calls it.
    public var url: String
    /// Its bytes.
    public var content: [UInt8]

    /// Creates a file.
    public init(url: String, content: [UInt8]) {
        self.url = url
        self.content = content
    }
}

/// Commands and questions on what is kept for learning: users, courses, lessons, review sessions and
/// vocabularies.
///
/// Nothing here is shipped. What a learner does is progress: `OfflineStore.progress`.
public struct LearningCommands: Sendable {
    let store: EventStore
    let files: FileStore

    init(_ store: EventStore, _ files: FileStore) {
        self.store = store
        self.files = files
    }

    // MARK: Users and courses

    /// Stores what is known of a user; what is known already is not recorded again. Durable on
    /// return.
    ///
    /// - Parameters:
    ///   - userId: the user.
    ///   - info: the text of a JSON object, kept as it is; nil for the id alone.
    /// - Throws: `EventError` (`invalidData`) for an empty id or what is no object; `tooLarge` for
    ///   more than 1 MiB; `LogError` as `EventStore.append`.
    public func storeUser(_ userId: String, info: [UInt8]? = nil) async throws {
        // Nothing but one object may stand there: it would be members of the event.
        if let info { _ = try JSONFields(info, place: "info") }
        let stored = UserStored(userId: userId, info: info)
        guard try await unlessLost({ try await user(userId) }) != stored else { return }
        try await store.write { transaction in
            let stamp = transaction.view(LearningView.self).learner(userId)?.info?.stamp
            try transaction.append(stored, replacing: stamp)
        }
    }

    /// What is known of a user, from the log; nil if nothing was stored.
    ///
    /// - Throws: `LogError`, `corrupt` where the log has lost the event that holds it.
    /// - Complexity: one frame to read.
    public func user(_ userId: String) async throws -> UserStored? {
        try await read(UserStored.self) { $0.learner(userId)?.info?.value }
    }

    /// Chooses what a user learns; what is chosen already is not recorded again. Durable on return.
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
                replacing: known?.stamp)
        }
    }

    /// Stores the courses of a language combination with their lessons, without the lessons'
    /// contents; an unchanged list is not recorded again. Durable on return.
    ///
    /// - Throws: `EventError` (`invalidData`) for an empty id, or one that stands there twice;
    ///   `tooLarge` for more than 1 MiB; `LogError` as `EventStore.append`.
    /// - Complexity: O(lessons).
    public func storeCourses(
        _ courses: [ListedCourse], of combination: LanguageCombination
    ) async throws {
        let listed = CoursesListed(combination: combination, courses: courses)
        let json = try listed.json()
        try await store.write { transaction in
            let view = transaction.view(LearningView.self)
            if let known = view.courses(of: combination),
                try CoursesListed(combination: combination, courses: known).json() == json
            {
                return
            }
            try transaction.append(listed, replacing: view.coursesStamp(combination))
        }
    }

    // MARK: Lessons

    /// Stores a lesson: what an app does that has fetched it by itself. Durable on return, files
    /// included; the lesson is there whole or, after an error, as it was.
    ///
    /// - Parameters:
    ///   - lessonId: the lesson.
    ///   - courseId: the course it belongs to.
    ///   - content: the text of a JSON object, kept as it is.
    ///   - files: the files that go with it; the URLs differ.
    ///   - isExplicit: whether the user asked for it. A lesson that was asked for stays so.
    /// - Throws: `EventError` (`invalidData`) for an empty id, what is no object, or a URL that is
    ///   empty or stands there twice; `tooLarge` for a content of more than 1 MiB; `refused` if it
    ///   was removed at the same time; `FileStoreError`; `LogError` as `EventStore.append`.
    @discardableResult
    public func storeLesson(
        _ lessonId: String, course courseId: String, content: [UInt8],
        files: [LearningFileContent] = [], isExplicit: Bool
    ) async throws -> StoredLesson {
        try await withStored(files) { files in
            try await recordLesson(
                lessonId, course: courseId,
                LearningMaterial(content: content, files: files, isExplicit: isExplicit))
        }
    }

    /// As the public one, for files that are held in the store.
    func recordLesson(
        _ lessonId: String, course courseId: String, _ material: LearningMaterial
    ) async throws -> StoredLesson {
        _ = try JSONFields(material.content, place: "content")
        try await files.requireHeld(material.files.map(\.file))
        try await store.write { transaction in
            let view = transaction.view(LearningView.self)
            var stored = LessonStored(courseId: courseId, lessonId: lessonId, material: material)
            if view.lesson(lessonId, course: courseId)?.material.isExplicit ?? false {
                stored.material.isExplicit = true
            }
            try transaction.append(
                stored, replacing: view.stamp(ofLesson: lessonId, course: courseId))
        }
        guard let stored = store.view(LearningView.self).lesson(lessonId, course: courseId) else {
            throw EventError(.refused, "the lesson \(lessonId) was removed while it was stored")
        }
        return stored
    }

    /// The content of a lesson and its files, from the log; nil if it is not on the device.
    ///
    /// - Throws: `LogError`, `corrupt` where the log has lost the event that holds it.
    /// - Complexity: one frame to read.
    public func readLesson(
        _ lessonId: String, course courseId: String
    ) async throws -> LearningMaterial? {
        try await read(LessonStored.self) {
            $0.lesson(lessonId, course: courseId)?.material.event
        }?.material
    }

    /// Removes a lesson from the device, with the files that nothing else names. What the learner
    /// did in it stays. Durable on return.
    ///
    /// - Throws: `EventError` (`refused`) for one that is not there; `LogError` as
    ///   `EventStore.append`; `FileStoreError` for a file that could not be deleted, with the
    ///   removal on record: `FileStore.collect()` tries again.
    public func removeLesson(_ lessonId: String, course courseId: String) async throws {
        try await store.write(drawingOnReserve: true) { transaction in
            let view = transaction.view(LearningView.self)
            guard view.lesson(lessonId, course: courseId) != nil else {
                throw EventError(
                    .refused, "the lesson \(lessonId) of \(courseId) is not on the device")
            }
            try transaction.append(
                LessonRemoved(courseId: courseId, lessonId: lessonId),
                replacing: view.stamp(ofLesson: lessonId, course: courseId))
        }
        try await files.collect()
    }

    // MARK: Review sessions

    /// Stores a review session: what an app does that has fetched it by itself. Durable on return,
    /// files included; the session is there whole or, after an error, as it was.
    ///
    /// - Parameters:
    ///   - reviewId: the session.
    ///   - userId: whose it is.
    ///   - combination: of which languages.
    ///   - courseId: the course, if it belongs to one.
    ///   - order: its place among the sessions that come next, from 0.
    ///   - content: the text of a JSON object, kept as it is.
    ///   - files: the files that go with it; the URLs differ.
    ///   - isExplicit: whether the user asked for it. A session that was asked for stays so.
    /// - Throws: as `storeLesson`; `invalidData` for an order below 0, too.
    @discardableResult
    public func storeReview(
        _ reviewId: String, of userId: String, in combination: LanguageCombination,
        course courseId: String? = nil, order: Int, content: [UInt8],
        files: [LearningFileContent] = [], isExplicit: Bool
    ) async throws -> StoredReview {
        try await withStored(files) { files in
            try await recordReview(
                ReviewStored(
                    userId: userId, reviewId: reviewId, combination: combination,
                    courseId: courseId, order: order,
                    material: LearningMaterial(
                        content: content, files: files, isExplicit: isExplicit)))
        }
    }

    /// As the public one, for files that are held in the store.
    func recordReview(_ review: ReviewStored) async throws -> StoredReview {
        _ = try JSONFields(review.material.content, place: "content")
        try await files.requireHeld(review.material.files.map(\.file))
        try await store.write { transaction in
            let view = transaction.view(LearningView.self)
            var review = review
            if view.review(review.reviewId, of: review.userId)?.material.isExplicit ?? false {
                review.material.isExplicit = true
            }
            try transaction.append(
                review, replacing: view.stamp(ofReview: review.reviewId, of: review.userId))
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
    /// - Throws: `EventError` (`refused`) while the user's sessions are downloaded: none may be
    ///   started then (LRN-35). Else as `readLesson`.
    /// - Complexity: one frame to read.
    public func readReview(
        _ reviewId: String, of userId: String
    ) async throws -> LearningMaterial? {
        try requireNoReviewDownload(for: userId)
        let material = try await read(ReviewStored.self) {
            $0.review(reviewId, of: userId)?.material.event
        }?.material
        // One may have begun meanwhile.
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

    /// Removes a review session from the device, with the files that nothing else names. What the
    /// learner did in it stays. Durable on return.
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
                replacing: view.stamp(ofReview: reviewId, of: userId))
        }
        try await files.collect()
    }

    /// Removes the sessions of a user and a combination that are not among those that come next and
    /// that nobody asked for, or that are done. Durable on return.
    func removeReviews(
        of userId: String, in combination: LanguageCombination, but next: [String]
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
                    replacing: view.stamp(ofReview: review.reviewId, of: userId))
            }
        }
        // It is on record: what cannot be deleted now goes with the next collection.
        _ = try? await files.collect()
    }

    // MARK: Vocabulary

    /// Caches a user's vocabulary: what an app does when the review manager is looked at. Of more
    /// than 200 items the first 200 are kept. An unchanged vocabulary is not recorded again.
    /// Durable on return.
    ///
    /// - Throws: `EventError` (`invalidData`) for an empty id or an item that stands there twice;
    ///   `tooLarge` for more than 1 MiB; `LogError` as `EventStore.append`.
    /// - Returns: how many items are cached.
    @discardableResult
    public func cacheVocabulary(
        _ items: some Sequence<VocabularyItem>, of userId: String,
        in combination: LanguageCombination
    ) async throws -> Int {
        let cached = VocabularyCached(
            userId: userId, combination: combination,
            items: Array(items.prefix(VocabularyCached.itemsMax)))
        let known = try await unlessLost { try await vocabulary(of: userId, in: combination) }
        guard known != cached.items else { return cached.items.count }
        try await store.write { transaction in
            let stamp = transaction.view(LearningView.self).vocabularyStamp(of: userId, combination)
            try transaction.append(cached, replacing: stamp)
        }
        return cached.items.count
    }

    /// A user's vocabulary, from the log, in the order in which it was given; nil if none was ever
    /// cached.
    ///
    /// - Throws: `LogError`, `corrupt` where the log has lost the event that holds it.
    /// - Complexity: one frame to read.
    public func vocabulary(
        of userId: String, in combination: LanguageCombination
    ) async throws -> [VocabularyItem]? {
        try await read(VocabularyCached.self) {
            $0.vocabulary(of: userId, combination)?.value.event
        }?.items
    }

    // MARK: Files and events

    /// Stores files, records what they are for, and deletes what is not needed any more.
    private func withStored<Result: Sendable>(
        _ contents: [LearningFileContent], record: ([LearningFile]) async throws -> Result
    ) async throws -> Result {
        var stored: [LearningFile] = []
        do {
            for file in contents {
                stored.append(
                    LearningFile(
                        url: file.url, file: try await files.add(file.content),
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

    /// Lets go of held files. What no event names goes with this collection or, if it fails, with
    /// the next.
    func release(_ held: [LearningFile]) async {
        await files.release(held.map(\.file))
        _ = try? await files.collect()
    }

    /// What is known, to compare with it: what the log has lost is not.
    private func unlessLost<Known>(_ read: () async throws -> Known?) async throws -> Known? {
        do { return try await read() } catch let error as LogError where error.code == .corrupt {
            return nil
        }
    }

    /// The data of the event that a view names.
    private func read<Payload: EventPayload>(
        _ type: Payload.Type, _ find: @Sendable (LearningView) -> UUID?
    ) async throws -> Payload? {
        try await store.named(type, by: { find(store.view(LearningView.self)) }, event: \.self)?
            .payload
    }
}

/// The number of downloads of review sessions that are under way in this process, by user (LRN-35).
enum ReviewDownloads: TransientState {
    typealias Key = String
    typealias Value = Int
}

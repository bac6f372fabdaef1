// The index of the material for learning without a network: users, their language combinations, courses,
// lessons, review sessions and vocabularies. Registers by LWW timestamp; contents stay in the log.
// Spec/model/learning.md, LRN-4; Spec/model/views.md.

import Daybook
import Foundation
import HashTreeCollections

/// The courses of each language combination, and the material on the device.
public struct LearningView: ListableView, FileReferring {
    public static let name = "learning"
    public static let version = 1
    public static let eventTypes: Set<String>? = [
        UserStored.type, CombinationSelected.type, CoursesListed.type, LessonStored.type,
        LessonRemoved.type, ReviewStored.type, ReviewRemoved.type, VocabularyCached.type,
    ]

    /// The material of a lesson or a session, without its content.
    struct Material: Hashable, Sendable {
        /// The event with the content.
        var event: UUID
        var size: Int
        var files: [LearningFile]
        var isExplicit: Bool
    }

    struct Review: Hashable, Sendable {
        var combination: LanguageCombination
        var courseId: String?
        var order: Int
        var material: Material
    }

    struct Vocabulary: Hashable, Sendable {
        /// The event with the items.
        var event: UUID
        var count: Int
    }

    /// A value for each language combination: by the learned language, then by the display language. No
    /// inner dictionary is empty.
    typealias ByCombination<Value> = TreeDictionary<EntityID, TreeDictionary<EntityID, Value>>

    struct Learner: Sendable {
        /// The event with the information.
        var info: Register<UUID>?
        var combination: Register<LanguageCombination>?
        var vocabularies: ByCombination<Register<Vocabulary>> = [:]
        var reviews: TreeDictionary<EntityID, Register<Review?>> = [:]
    }

    var learners: TreeDictionary<EntityID, Learner> = [:]
    var courses: ByCombination<Register<[ListedCourse]>> = [:]
    /// By course, then by lesson. No inner dictionary is empty.
    var lessons: TreeDictionary<EntityID, TreeDictionary<EntityID, Register<Material?>>> =
        [:]
    /// The number of references to each file.
    var files: TreeDictionary<FileID, Int> = [:]
    /// The number of events with invalid data.
    public internal(set) var ignored = 0

    public init() {}

    public mutating func fold(_ event: Event) {
        let lwwTimestamp = event.lwwTimestamp
        do {
            switch event.type {
            case UserStored.type:
                let user = try event.payload(as: UserStored.self)
                learners[EntityID(user.userId), default: Learner()].info.set(event.id, lwwTimestamp)
            case CombinationSelected.type:
                let selected = try event.payload(as: CombinationSelected.self)
                learners[EntityID(selected.userId), default: Learner()].combination
                    .set(selected.combination, lwwTimestamp)
            case CoursesListed.type:
                let listed = try event.payload(as: CoursesListed.self)
                let (learn, display) = listed.combination.keys
                courses[learn, default: [:]][display].set(listed.courses, lwwTimestamp)
            case LessonStored.type:
                let stored = try event.payload(as: LessonStored.self)
                setLesson(
                    Material(stored.material, event.id), lwwTimestamp, stored.courseId,
                    stored.lessonId)
            case LessonRemoved.type:
                let removed = try event.payload(as: LessonRemoved.self)
                setLesson(nil, lwwTimestamp, removed.courseId, removed.lessonId)
            case ReviewStored.type:
                let stored = try event.payload(as: ReviewStored.self)
                let review = Review(
                    combination: stored.combination, courseId: stored.courseId,
                    order: stored.order, material: Material(stored.material, event.id))
                setReview(review, lwwTimestamp, stored.userId, stored.reviewId)
            case ReviewRemoved.type:
                let removed = try event.payload(as: ReviewRemoved.self)
                setReview(nil, lwwTimestamp, removed.userId, removed.reviewId)
            case VocabularyCached.type:
                let cached = try event.payload(as: VocabularyCached.self)
                let (learn, display) = cached.combination.keys
                learners[EntityID(cached.userId), default: Learner()].vocabularies[
                    learn, default: [:]][display]
                    .set(Vocabulary(event: event.id, count: cached.items.count), lwwTimestamp)
            default: break
            }
        } catch { ignored += 1 }
    }

    private mutating func setLesson(
        _ lesson: Material?, _ lwwTimestamp: LWWTimestamp, _ courseId: String, _ lessonId: String
    ) {
        let (courseId, lessonId) = (EntityID(courseId), EntityID(lessonId))
        let old = lessons[courseId]?[lessonId]
        guard old.map({ $0.lwwTimestamp < lwwTimestamp }) ?? true else { return }
        lessons[courseId, default: [:]][lessonId] = Register(lesson, lwwTimestamp)
        countFiles(of: lesson, by: 1)
        countFiles(of: old?.value, by: -1)
    }

    private mutating func setReview(
        _ review: Review?, _ lwwTimestamp: LWWTimestamp, _ userId: String, _ reviewId: String
    ) {
        let (userId, reviewId) = (EntityID(userId), EntityID(reviewId))
        let old = learners[userId]?.reviews[reviewId]
        guard old.map({ $0.lwwTimestamp < lwwTimestamp }) ?? true else { return }
        learners[userId, default: Learner()].reviews[reviewId] = Register(review, lwwTimestamp)
        countFiles(of: review?.material, by: 1)
        countFiles(of: old?.value?.material, by: -1)
    }

    mutating func countFiles(of material: Material?, by sign: Int) {
        for file in material?.files ?? [] {
            let count = (files[file.file] ?? 0) + sign
            files[file.file] = count > 0 ? count : nil
        }
    }

    public func refers(to file: FileID) -> Bool { files[file] != nil }

    // MARK: LWW timestamps

    func learner(_ userId: String) -> Learner? { learners[EntityID(userId)] }

    /// The LWW timestamp that the next list of courses must exceed to take effect. O(1).
    func coursesTimestamp(_ combination: LanguageCombination) -> LWWTimestamp? {
        courses[combination.keys.learn]?[combination.keys.display]?.lwwTimestamp
    }

    /// The LWW timestamp that the next vocabulary must exceed to take effect. O(1).
    func vocabularyTimestamp(of userId: String, _ combination: LanguageCombination) -> LWWTimestamp?
    {
        vocabulary(of: userId, combination)?.lwwTimestamp
    }

    func vocabulary(
        of userId: String, _ combination: LanguageCombination
    ) -> Register<Vocabulary>? {
        learner(userId)?.vocabularies[combination.keys.learn]?[combination.keys.display]
    }

    /// The LWW timestamp that the next event of a lesson must exceed to take effect. O(1).
    func lwwTimestamp(ofLesson lessonId: String, course courseId: String) -> LWWTimestamp? {
        lessons[EntityID(courseId)]?[EntityID(lessonId)]?.lwwTimestamp
    }

    /// The LWW timestamp that the next event of a session must exceed to take effect. O(1).
    func lwwTimestamp(ofReview reviewId: String, of userId: String) -> LWWTimestamp? {
        learner(userId)?.reviews[EntityID(reviewId)]?.lwwTimestamp
    }

    // MARK: Queries of courses

    /// Returns a user's language combination; nil if none was chosen. O(1).
    public func combination(of userId: String) -> LanguageCombination? {
        learner(userId)?.combination?.value
    }

    /// Returns the courses of a language combination, in the given order; nil if they were never stored.
    /// O(1).
    public func courses(of combination: LanguageCombination) -> [ListedCourse]? {
        courses[combination.keys.learn]?[combination.keys.display]?.value
    }

    /// Returns the lesson after another one in its course; nil for the last lesson of a course and for an
    /// unknown one. O(lessons of the combination).
    public func lesson(
        after lessonId: String, course courseId: String, in combination: LanguageCombination
    ) -> ListedLesson? {
        neighbour(of: lessonId, 1, courseId, combination)
    }

    /// Returns the lesson before another one in its course; nil for the first lesson of a course and for an
    /// unknown one. O(lessons of the combination).
    public func lesson(
        before lessonId: String, course courseId: String, in combination: LanguageCombination
    ) -> ListedLesson? {
        neighbour(of: lessonId, -1, courseId, combination)
    }

    private func neighbour(
        of lessonId: String, _ step: Int, _ courseId: String, _ combination: LanguageCombination
    ) -> ListedLesson? {
        let (courseId, lessonId) = (EntityID(courseId), EntityID(lessonId))
        let course = courses(of: combination)?.first { EntityID($0.id) == courseId }
        guard let lessons = course?.lessons,
            let index = lessons.firstIndex(where: { EntityID($0.id) == lessonId }),
            lessons.indices.contains(index + step)
        else { return nil }
        return lessons[index + step]
    }

    // MARK: Queries of stored material

    /// Returns a lesson on the device; nil if it is not there. O(1).
    public func lesson(_ lessonId: String, course courseId: String) -> StoredLesson? {
        let register = lessons[EntityID(courseId)]?[EntityID(lessonId)]
        guard let register, let material = register.value else { return nil }
        return StoredLesson(
            courseId: courseId, lessonId: lessonId,
            material: StoredMaterial(material, register.lwwTimestamp))
    }

    /// The lessons on the device, by course and lesson. O(n log n) for n lessons ever stored.
    public var storedLessons: [StoredLesson] {
        lessons.sorted { $0.key < $1.key }.flatMap { courseId, lessons in
            lessons.sorted { $0.key < $1.key }.compactMap { lessonId, _ in
                lesson(lessonId.string, course: courseId.string)
            }
        }
    }

    /// Returns a review session on the device; nil if it is not there. O(1).
    public func review(_ reviewId: String, of userId: String) -> StoredReview? {
        learner(userId)?.reviews[EntityID(reviewId)].flatMap {
            StoredReview(userId, reviewId, $0)
        }
    }

    /// Returns a user's review sessions on the device, by `order`, then by id. O(n log n) for n sessions
    /// ever stored.
    ///
    /// - Parameters:
    ///   - userId: the learner's id.
    ///   - combination: the languages; nil for all.
    public func reviews(
        of userId: String, _ combination: LanguageCombination? = nil
    ) -> [StoredReview] {
        (learner(userId)?.reviews ?? [:])
            .compactMap { StoredReview(userId, $0.key.string, $0.value) }
            .filter { combination == nil || $0.combination == combination }
            .sorted { ($0.order, EntityID($0.reviewId)) < ($1.order, EntityID($1.reviewId)) }
    }

    /// Returns the number of items of a user's vocabulary; nil if no vocabulary was ever cached. O(1).
    public func vocabularyCount(
        of userId: String, _ combination: LanguageCombination
    ) -> Int? {
        vocabulary(of: userId, combination)?.value.count
    }

    /// The ids of all users with an entry, sorted. O(users).
    public var userIDs: [String] { learners.keys.sorted().map(\.string) }
}

extension LearningView.Material {
    init(_ material: LearningMaterial, _ event: UUID) {
        self.init(
            event: event, size: material.size, files: material.files,
            isExplicit: material.isExplicit)
    }
}

// What is on the device for learning without a network: users, their language combinations, courses,
// and which lessons, review sessions and vocabularies there are. Registers by stamp; contents stay in
// the log. Spec/model/learning.md, LRN-4; Spec/model/views.md.

import Daybook
import Foundation
import HashTreeCollections

/// What there is to learn, and what of it is on the device.
public struct LearningView: ListableView, FileReferring {
    public static let name = "learning"
    public static let version = 1
    public static let eventTypes: Set<String>? = [
        UserStored.type, CombinationSelected.type, CoursesListed.type, LessonStored.type,
        LessonRemoved.type, ReviewStored.type, ReviewRemoved.type, VocabularyCached.type,
    ]

    /// What is kept in memory of a lesson's or a session's material.
    struct Held: Hashable, Sendable {
        /// The event that holds the content.
        var event: UUID
        var size: Int
        var files: [LearningFile]
        var isExplicit: Bool
    }

    struct Review: Hashable, Sendable {
        var combination: LanguageCombination
        var courseId: String?
        var order: Int
        var held: Held
    }

    struct Vocabulary: Hashable, Sendable {
        /// The event that holds the items.
        var event: UUID
        var count: Int
    }

    /// Something for each language combination: by the language that is learned, then by the other
    /// one. No dictionary within is empty.
    typealias ByCombination<Value> = TreeDictionary<EntityID, TreeDictionary<EntityID, Value>>

    struct Learner: Sendable {
        /// The event that holds the information.
        var info: Register<UUID>?
        var combination: Register<LanguageCombination>?
        var vocabularies: ByCombination<Register<Vocabulary>> = [:]
        var reviews: TreeDictionary<EntityID, Register<Review?>> = [:]
    }

    var learners: TreeDictionary<EntityID, Learner> = [:]
    var courses: ByCombination<Register<[ListedCourse]>> = [:]
    /// By course, then by lesson; no dictionary within is empty.
    var lessons: TreeDictionary<EntityID, TreeDictionary<EntityID, Register<Held?>>> = [:]
    /// How many things name each file.
    var files: TreeDictionary<FileID, Int> = [:]
    /// Events whose data no rule can make sense of.
    public internal(set) var ignored = 0

    public init() {}

    public mutating func fold(_ event: Event) {
        let stamp = event.stamp
        do {
            switch event.type {
            case UserStored.type:
                let user = try event.payload(as: UserStored.self)
                learners[EntityID(user.userId), default: Learner()].info.set(event.id, stamp)
            case CombinationSelected.type:
                let selected = try event.payload(as: CombinationSelected.self)
                learners[EntityID(selected.userId), default: Learner()].combination
                    .set(selected.combination, stamp)
            case CoursesListed.type:
                let listed = try event.payload(as: CoursesListed.self)
                let (learn, display) = listed.combination.keys
                courses[learn, default: [:]][display].set(listed.courses, stamp)
            case LessonStored.type:
                let stored = try event.payload(as: LessonStored.self)
                set(Held(stored.material, event.id), stamp, stored.courseId, stored.lessonId)
            case LessonRemoved.type:
                let removed = try event.payload(as: LessonRemoved.self)
                set(nil, stamp, removed.courseId, removed.lessonId)
            case ReviewStored.type:
                let stored = try event.payload(as: ReviewStored.self)
                let review = Review(
                    combination: stored.combination, courseId: stored.courseId,
                    order: stored.order, held: Held(stored.material, event.id))
                set(review, stamp, stored.userId, review: stored.reviewId)
            case ReviewRemoved.type:
                let removed = try event.payload(as: ReviewRemoved.self)
                set(nil, stamp, removed.userId, review: removed.reviewId)
            case VocabularyCached.type:
                let cached = try event.payload(as: VocabularyCached.self)
                let (learn, display) = cached.combination.keys
                learners[EntityID(cached.userId), default: Learner()].vocabularies[
                    learn, default: [:]][display]
                    .set(Vocabulary(event: event.id, count: cached.items.count), stamp)
            default: break
            }
        } catch { ignored += 1 }
    }

    private mutating func set(
        _ lesson: Held?, _ stamp: Stamp, _ courseId: String, _ lessonId: String
    ) {
        let (courseId, lessonId) = (EntityID(courseId), EntityID(lessonId))
        let old = lessons[courseId]?[lessonId]
        guard old.map({ $0.stamp < stamp }) ?? true else { return }
        lessons[courseId, default: [:]][lessonId] = Register(lesson, stamp)
        count(lesson, by: 1)
        count(old?.value, by: -1)
    }

    private mutating func set(
        _ review: Review?, _ stamp: Stamp, _ userId: String, review reviewId: String
    ) {
        let (userId, reviewId) = (EntityID(userId), EntityID(reviewId))
        let old = learners[userId]?.reviews[reviewId]
        guard old.map({ $0.stamp < stamp }) ?? true else { return }
        learners[userId, default: Learner()].reviews[reviewId] = Register(review, stamp)
        count(review?.held, by: 1)
        count(old?.value?.held, by: -1)
    }

    mutating func count(_ held: Held?, by sign: Int) {
        for file in held?.files ?? [] {
            let count = (files[file.file] ?? 0) + sign
            files[file.file] = count > 0 ? count : nil
        }
    }

    public func refers(to file: FileID) -> Bool { files[file] != nil }

    // MARK: What counts

    func learner(_ userId: String) -> Learner? { learners[EntityID(userId)] }

    /// What the next list of courses must pass to count. O(1).
    func coursesStamp(_ combination: LanguageCombination) -> Stamp? {
        courses[combination.keys.learn]?[combination.keys.display]?.stamp
    }

    /// What the next vocabulary must pass to count. O(1).
    func vocabularyStamp(of userId: String, _ combination: LanguageCombination) -> Stamp? {
        vocabulary(of: userId, combination)?.stamp
    }

    func vocabulary(
        of userId: String, _ combination: LanguageCombination
    ) -> Register<Vocabulary>? {
        learner(userId)?.vocabularies[combination.keys.learn]?[combination.keys.display]
    }

    /// What the next event of a lesson must pass to count. O(1).
    func stamp(ofLesson lessonId: String, course courseId: String) -> Stamp? {
        lessons[EntityID(courseId)]?[EntityID(lessonId)]?.stamp
    }

    /// What the next event of a session must pass to count. O(1).
    func stamp(ofReview reviewId: String, of userId: String) -> Stamp? {
        learner(userId)?.reviews[EntityID(reviewId)]?.stamp
    }

    // MARK: Questions about courses

    /// What a user learns; nil if nothing was chosen. O(1).
    public func combination(of userId: String) -> LanguageCombination? {
        learner(userId)?.combination?.value
    }

    /// The courses of a language combination, in the order in which they were given; nil if they
    /// were never stored. O(1).
    public func courses(of combination: LanguageCombination) -> [ListedCourse]? {
        courses[combination.keys.learn]?[combination.keys.display]?.value
    }

    /// The lesson that follows another one in its course; nil for the last of a course, whose
    /// successor nobody can know, and for one that is not there. O(lessons of the combination).
    public func lesson(
        after lessonId: String, course courseId: String, in combination: LanguageCombination
    ) -> ListedLesson? {
        neighbour(of: lessonId, 1, courseId, combination)
    }

    /// The lesson that comes before another one in its course; nil for the first of a course, and
    /// for one that is not there. O(lessons of the combination).
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

    // MARK: Questions about what is stored

    /// Whether any lesson of a course is on the device. O(lessons of the course).
    func hasLessons(of courseId: String) -> Bool {
        lessons[EntityID(courseId)]?.values.contains { $0.value != nil } ?? false
    }

    /// A lesson that is on the device. O(1).
    public func lesson(_ lessonId: String, course courseId: String) -> StoredLesson? {
        let register = lessons[EntityID(courseId)]?[EntityID(lessonId)]
        guard let register, let held = register.value else { return nil }
        return StoredLesson(
            courseId: courseId, lessonId: lessonId, material: StoredMaterial(held, register.stamp))
    }

    /// The lessons that are on the device, by course and lesson. O(n log n) for all that ever were.
    public var storedLessons: [StoredLesson] {
        lessons.sorted { $0.key < $1.key }.flatMap { courseId, lessons in
            lessons.sorted { $0.key < $1.key }.compactMap { lessonId, _ in
                lesson(lessonId.string, course: courseId.string)
            }
        }
    }

    /// A review session that is on the device. O(1).
    public func review(_ reviewId: String, of userId: String) -> StoredReview? {
        learner(userId)?.reviews[EntityID(reviewId)].flatMap {
            StoredReview(userId, reviewId, $0)
        }
    }

    /// A user's review sessions that are on the device: by their `order`, then by id. O(n log n) for
    /// all that ever were.
    ///
    /// - Parameters:
    ///   - userId: the learner.
    ///   - combination: nil for those of all languages.
    public func reviews(
        of userId: String, _ combination: LanguageCombination? = nil
    ) -> [StoredReview] {
        (learner(userId)?.reviews ?? [:])
            .compactMap { StoredReview(userId, $0.key.string, $0.value) }
            .filter { combination == nil || $0.combination == combination }
            .sorted { ($0.order, EntityID($0.reviewId)) < ($1.order, EntityID($1.reviewId)) }
    }

    /// How many items of a user's vocabulary are on the device; nil if none was ever cached. O(1).
    public func vocabularyCount(
        of userId: String, _ combination: LanguageCombination
    ) -> Int? {
        vocabulary(of: userId, combination)?.value.count
    }

    /// The users of whom anything is known, sorted. O(users).
    public var userIDs: [String] { learners.keys.sorted().map(\.string) }
}

extension LearningView.Held {
    init(_ material: LearningMaterial, _ event: UUID) {
        self.init(
            event: event, size: material.size, files: material.files,
            isExplicit: material.isExplicit)
    }
}

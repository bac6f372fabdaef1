// The index of the material for learning without a network: users, their language combinations, courses,
// lessons, review sessions and vocabularies. Registers by LWW timestamp; contents stay in the log.
// Spec/model/learning.md, LRN-4; Spec/model/views.md.

import Daybook
import Foundation
import HashTreeCollections

/// The courses of each language combination, and the material on the device.
public struct LearningView: DeclaredView, ListableView, FileReferring {
    public static let name = "learning"
    public static let version = 2
    public static let events: ViewEvents<LearningView> = [
        .on(UserStored.self) { user, view, change in
            view.learners.update(user.userId, &change) { $1.set(&$0.info, to: $1.event) }
        },
        .on(CombinationSelected.self) { selected, view, change in
            view.learners.update(selected.userId, &change) {
                $1.set(&$0.combination, to: selected.combination)
            }
        },
        .on(CoursesListed.self) { listed, view, change in
            let (learn, display) = listed.combination.keys
            change.set(&view.courses[learn, default: [:]][display], to: listed.courses)
        },
        .on(LessonStored.self) { stored, view, change in
            let material = Material(stored.material, change.event)
            view.setLesson(material, stored.courseId, stored.lessonId, &change)
        },
        .on(LessonRemoved.self) { $1.setLesson(nil, $0.courseId, $0.lessonId, &$2) },
        .on(ReviewStored.self) { stored, view, change in
            let review = Review(
                combination: stored.combination, courseId: stored.courseId,
                order: stored.order, material: Material(stored.material, change.event))
            view.setReview(review, stored.userId, stored.reviewId, &change)
        },
        .on(ReviewRemoved.self) { $1.setReview(nil, $0.userId, $0.reviewId, &$2) },
        .on(VocabularyCached.self) { cached, view, change in
            let (learn, display) = cached.combination.keys
            let vocabulary = Vocabulary(event: change.event, count: cached.items.count)
            view.learners.update(cached.userId, &change) {
                $1.set(&$0.vocabularies[learn, default: [:]][display], to: vocabulary)
            }
        },
    ]

    /// The material of a lesson or a session, without its content.
    struct Material: StateObject, Hashable {
        /// The event with the content.
        var event = EventDraft.noBase
        var size = 0
        var files: [LearningFile] = []
        var isExplicit = false

        mutating func visitState(_ state: inout some StateVisitor) throws(EventError) {
            try state.visit(&event, &size, &files, &isExplicit)
        }
    }

    struct Review: StateObject, Hashable {
        var combination = LanguageCombination.example
        var courseId: String?
        var order = 0
        var material = Material()

        mutating func visitState(_ state: inout some StateVisitor) throws(EventError) {
            try state.visit(&combination, &courseId, &order, &material)
        }
    }

    struct Vocabulary: StateObject, Hashable {
        /// The event with the items.
        var event = EventDraft.noBase
        var count = 0

        mutating func visitState(_ state: inout some StateVisitor) throws(EventError) {
            try state.visit(&event, &count)
        }
    }

    /// A value for each language combination: by the learned language, then by the display language. No
    /// inner dictionary is empty.
    typealias ByCombination<Value> = TreeDictionary<EntityID, TreeDictionary<EntityID, Value>>

    struct Learner: StateObject {
        /// The event with the information.
        var info: Register<UUID>?
        var combination: Register<LanguageCombination>?
        var vocabularies: ByCombination<Register<Vocabulary>> = [:]
        var reviews: TreeDictionary<EntityID, Register<Review?>> = [:]

        mutating func visitState(_ state: inout some StateVisitor) throws(EventError) {
            try state.visit(&info, &combination, &vocabularies, &reviews)
        }
    }

    var learners = EntityTable<Learner>()
    var courses: ByCombination<Register<[ListedCourse]>> = [:]
    /// By course, then by lesson. No inner dictionary is empty.
    var lessons: TreeDictionary<EntityID, TreeDictionary<EntityID, Register<Material?>>> =
        [:]
    /// The number of references to each file.
    var files: TreeDictionary<FileID, Int> = [:]
    public var ignored = 0

    public init() {}

    public mutating func visitState(_ state: inout some StateVisitor) throws(EventError) {
        try state.visit(&courses, &lessons, &learners)
    }

    public mutating func computeIndexes() {
        for register in lessons.values.flatMap(\.values) { countFiles(of: register.value, by: 1) }
        for (_, learner) in learners.entities {
            for review in learner.reviews.values { countFiles(of: review.value?.material, by: 1) }
        }
    }

    private mutating func setLesson(
        _ lesson: Material?, _ courseId: String, _ lessonId: String, _ change: inout ViewChange
    ) {
        let (courseId, lessonId) = (EntityID(courseId), EntityID(lessonId))
        countFiles(of: lessons[courseId]?[lessonId]?.value, by: -1)
        change.set(&lessons[courseId, default: [:]][lessonId], to: lesson)
        countFiles(of: lessons[courseId]?[lessonId]?.value, by: 1)
    }

    private mutating func setReview(
        _ review: Review?, _ userId: String, _ reviewId: String, _ change: inout ViewChange
    ) {
        let id = EntityID(reviewId)
        countFiles(of: learners[userId]?.reviews[id]?.value?.material, by: -1)
        learners.update(userId, &change) { $1.set(&$0.reviews[id], to: review) }
        countFiles(of: learners[userId]?.reviews[id]?.value?.material, by: 1)
    }

    private mutating func countFiles(of material: Material?, by sign: Int) {
        for file in material?.files ?? [] {
            let count = (files[file.file] ?? 0) + sign
            files[file.file] = count > 0 ? count : nil
        }
    }

    public func refers(to file: FileID) -> Bool { files[file] != nil }

    // MARK: LWW timestamps

    func learner(_ userId: String) -> Learner? { learners[userId] }

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
    public var userIDs: [String] { learners.ids().sorted().map(\.string) }
}

extension LearningView.Material {
    init(_ material: LearningMaterial, _ event: UUID) {
        self.init(
            event: event, size: material.size, files: material.files,
            isExplicit: material.isExplicit)
    }
}

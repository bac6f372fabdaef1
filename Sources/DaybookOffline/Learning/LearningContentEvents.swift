// The events of the contents of lessons and review sessions: stored, removed. They are not shipped. The
// completions are progress, and shipped. Spec/model/events.md, EVT-7.

import Daybook

/// The content of a lesson was stored. It replaces the one with the same course and lesson.
public struct LessonStored: DeclaredPayload, Hashable {
    public static let type = "daybook.lesson.stored"
    /// The course.
    public var courseId: String
    /// The lesson.
    public var lessonId: String
    /// The content and files.
    public var material: LearningMaterial  // its members

    public var subject: String? { lessonId }
}

/// The content of a lesson was removed.
public struct LessonRemoved: DeclaredPayload, Hashable {
    public static let type = "daybook.lesson.removed"
    /// The course.
    public var courseId: String
    /// The lesson.
    public var lessonId: String

    public var subject: String? { lessonId }
}

/// The content of a review session was stored. It replaces the one with the same user and session.
public struct ReviewStored: DeclaredPayload, Hashable {
    public static let type = "daybook.review.stored"
    /// The user of the session.
    public var userId: String
    /// The session.
    public var reviewId: String
    /// The language combination.
    public var combination: LanguageCombination  // its members
    /// The session's course, if it has one.
    public var courseId: String?
    /// The session's index among the next sessions, from 0.
    public var order: Int
    /// The content and files.
    public var material: LearningMaterial  // its members

    public var subject: String? { reviewId }
}

/// The content of a review session was removed.
public struct ReviewRemoved: DeclaredPayload, Hashable {
    public static let type = "daybook.review.removed"
    /// The user of the session.
    public var userId: String
    /// The session.
    public var reviewId: String

    public var subject: String? { reviewId }
}

/// The content and files of a lesson or a review session.
public struct LearningMaterial: DeclaredObject, Hashable {
    /// The text of a JSON object, stored unchanged.
    public var content: [UInt8]
    /// The files of the content, in the file store.
    public var files: [LearningFile] = []  // .objects(LearningFile.self, uniqueBy: "url")
    /// True if the user requested it.
    public var isExplicit: Bool

    /// Bytes of the content and of its files.
    var size: Int {
        files.reduce(content.count) { sum, file in
            let (total, overflow) = sum.addingReportingOverflow(file.size)
            return overflow ? .max : total
        }
    }
}

/// A file of a lesson or a review session. Its bytes are in the file store.
public struct LearningFile: DeclaredObject, Hashable {
    /// The file's name in the content.
    public var url: String
    /// Its content: `FileStore.read(_:)` for the bytes, `FileStore.path(of:)` for a path.
    public var file: FileID
    /// The size in bytes.
    public var size: Int
}

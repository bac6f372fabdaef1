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
    public var material: LearningMaterial

    /// Creates the event's data.
    public init(courseId: String, lessonId: String, material: LearningMaterial) {
        self.courseId = courseId
        self.lessonId = lessonId
        self.material = material
    }

    public static var example: Self {
        Self(courseId: "-", lessonId: "-", material: .example)
    }

    public mutating func declareMembers(_ members: inout some MemberVisitor) throws(EventError) {
        try members.required("courseId", &courseId, .identifier)
        try members.required("lessonId", &lessonId, .identifier)
        try material.declareMembers(&members)
    }

    public var subject: String? { lessonId }
}

/// The content of a lesson was removed.
public struct LessonRemoved: DeclaredPayload, Hashable {
    public static let type = "daybook.lesson.removed"
    /// The course.
    public var courseId: String
    /// The lesson.
    public var lessonId: String

    /// Creates the event's data.
    public init(courseId: String, lessonId: String) {
        self.courseId = courseId
        self.lessonId = lessonId
    }

    public static var example: Self {
        Self(courseId: "-", lessonId: "-")
    }

    public mutating func declareMembers(_ members: inout some MemberVisitor) throws(EventError) {
        try members.required("courseId", &courseId, .identifier)
        try members.required("lessonId", &lessonId, .identifier)
    }

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
    public var combination: LanguageCombination
    /// The session's course, if it has one.
    public var courseId: String?
    /// The session's index among the next sessions, from 0.
    public var order: Int
    /// The content and files.
    public var material: LearningMaterial

    /// Creates the event's data.
    public init(
        userId: String, reviewId: String, combination: LanguageCombination,
        courseId: String? = nil, order: Int, material: LearningMaterial
    ) {
        self.userId = userId
        self.reviewId = reviewId
        self.combination = combination
        self.courseId = courseId
        self.order = order
        self.material = material
    }

    public static var example: Self {
        Self(
            userId: "-", reviewId: "-", combination: .example, order: 0, material: .example)
    }

    public mutating func declareMembers(_ members: inout some MemberVisitor) throws(EventError) {
        try members.required("userId", &userId, .identifier)
        try members.required("reviewId", &reviewId, .identifier)
        try combination.declareMembers(&members)
        try members.optional("courseId", &courseId, .identifier)
        try members.required("order", &order, .count)
        try material.declareMembers(&members)
    }

    public var subject: String? { reviewId }
}

/// The content of a review session was removed.
public struct ReviewRemoved: DeclaredPayload, Hashable {
    public static let type = "daybook.review.removed"
    /// The user of the session.
    public var userId: String
    /// The session.
    public var reviewId: String

    /// Creates the event's data.
    public init(userId: String, reviewId: String) {
        self.userId = userId
        self.reviewId = reviewId
    }

    public static var example: Self {
        Self(userId: "-", reviewId: "-")
    }

    public mutating func declareMembers(_ members: inout some MemberVisitor) throws(EventError) {
        try members.required("userId", &userId, .identifier)
        try members.required("reviewId", &reviewId, .identifier)
    }

    public var subject: String? { reviewId }
}

/// The content and files of a lesson or a review session.
public struct LearningMaterial: DeclaredObject, Hashable {
    /// The text of a JSON object, stored unchanged.
    public var content: [UInt8]
    /// The files of the content, in the file store.
    public var files: [LearningFile]
    /// True if the user requested it.
    public var isExplicit: Bool

    /// Creates the material.
    public init(content: [UInt8], files: [LearningFile] = [], isExplicit: Bool) {
        self.content = content
        self.files = files
        self.isExplicit = isExplicit
    }

    public static var example: Self {
        Self(content: [], isExplicit: false)
    }

    public mutating func declareMembers(_ members: inout some MemberVisitor) throws(EventError) {
        try members.required("content", &content, .writtenObject)
        try members.optional(
            "files", &files, .objects(LearningFile.self, uniqueBy: "url"), missing: [])
        try members.required("isExplicit", &isExplicit, .flag)
    }

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

    /// Creates a description of a file that is in the file store.
    public init(url: String, file: FileID, size: Int) {
        self.url = url
        self.file = file
        self.size = size
    }

    public static var example: Self {
        Self(url: "-", file: .example, size: 0)
    }

    public mutating func declareMembers(_ members: inout some MemberVisitor) throws(EventError) {
        try members.required("url", &url, .identifier)
        try members.required("file", &file, .of(FileID.self))
        try members.required("size", &size, .count)
    }
}

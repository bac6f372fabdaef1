// A lesson or a review session comes to the device, with its files, and goes. What is done in it is
// progress, and shipped; this is not. Spec/model/events.md, EVT-7.

import Daybook

/// The content of a lesson was stored. It replaces the one with the same course and lesson.
public struct LessonStored: EventPayload, Hashable {
    public static let type = "daybook.lesson.stored"
    /// The course.
    public var courseId: String
    /// The lesson.
    public var lessonId: String
    /// What is in it.
    public var material: LearningMaterial

    /// Creates the event's data.
    public init(courseId: String, lessonId: String, material: LearningMaterial) {
        self.courseId = courseId
        self.lessonId = lessonId
        self.material = material
    }

    public init(json: [UInt8]) throws {
        let fields = try JSONFields(json)
        courseId = try fields.identifier("courseId")
        lessonId = try fields.identifier("lessonId")
        material = try LearningMaterial(fields)
    }

    public var subject: String? { lessonId }

    public func json() -> [UInt8] {
        var writer = JSONObjectWriter()
        writer.add("courseId", courseId)
        writer.add("lessonId", lessonId)
        material.add(to: &writer)
        return writer.finished()
    }
}

/// The content of a lesson was removed.
public struct LessonRemoved: EventPayload, Hashable {
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

    public init(json: [UInt8]) throws {
        let fields = try JSONFields(json)
        courseId = try fields.identifier("courseId")
        lessonId = try fields.identifier("lessonId")
    }

    public var subject: String? { lessonId }

    public func json() -> [UInt8] {
        var writer = JSONObjectWriter()
        writer.add("courseId", courseId)
        writer.add("lessonId", lessonId)
        return writer.finished()
    }
}

/// The content of a review session was stored. It replaces the one with the same user and session.
public struct ReviewStored: EventPayload, Hashable {
    public static let type = "daybook.review.stored"
    /// Whose session it is.
    public var userId: String
    /// The session.
    public var reviewId: String
    /// Of which languages.
    public var combination: LanguageCombination
    /// The course, if it belongs to one.
    public var courseId: String?
    /// Its place among the sessions that come next, from 0.
    public var order: Int
    /// What is in it.
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

    public init(json: [UInt8]) throws {
        let fields = try JSONFields(json)
        userId = try fields.identifier("userId")
        reviewId = try fields.identifier("reviewId")
        combination = try LanguageCombination(fields)
        courseId = try fields.optionalIdentifier("courseId")
        order = try fields.required(try fields.count("order"), "order")
        material = try LearningMaterial(fields)
    }

    public var subject: String? { reviewId }

    public func json() -> [UInt8] {
        var writer = JSONObjectWriter()
        writer.add("userId", userId)
        writer.add("reviewId", reviewId)
        combination.add(to: &writer)
        if let courseId { writer.add("courseId", courseId) }
        writer.add("order", order)
        material.add(to: &writer)
        return writer.finished()
    }
}

/// The content of a review session was removed.
public struct ReviewRemoved: EventPayload, Hashable {
    public static let type = "daybook.review.removed"
    /// Whose session it was.
    public var userId: String
    /// The session.
    public var reviewId: String

    /// Creates the event's data.
    public init(userId: String, reviewId: String) {
        self.userId = userId
        self.reviewId = reviewId
    }

    public init(json: [UInt8]) throws {
        let fields = try JSONFields(json)
        userId = try fields.identifier("userId")
        reviewId = try fields.identifier("reviewId")
    }

    public var subject: String? { reviewId }

    public func json() -> [UInt8] {
        var writer = JSONObjectWriter()
        writer.add("userId", userId)
        writer.add("reviewId", reviewId)
        return writer.finished()
    }
}

/// What a lesson or a review session consists of.
public struct LearningMaterial: Hashable, Sendable {
    /// The text of a JSON object, kept as it is.
    public var content: [UInt8]
    /// The files that go with it, in the file store.
    public var files: [LearningFile]
    /// Whether the user asked for it.
    public var isExplicit: Bool

    /// Creates the material.
    public init(content: [UInt8], files: [LearningFile] = [], isExplicit: Bool) {
        self.content = content
        self.files = files
        self.isExplicit = isExplicit
    }

    init(_ fields: JSONFields) throws(EventError) {
        content = try fields.required(fields.raw("content"), "content")
        _ = try fields.object("content")
        files = []
        for file in try fields.objects("files") ?? [] {
            guard let id = FileID(try file.string("file")) else {
                throw EventError(.invalidData, "\(file.place).file is not the id of a file")
            }
            files.append(
                LearningFile(
                    url: try file.identifier("url"), file: id,
                    size: try file.required(try file.count("size"), "size")))
        }
        try requireUnique(files.map(\.url), "data.files: the url")
        isExplicit = try fields.required(try fields.bool("isExplicit"), "isExplicit")
    }

    func add(to writer: inout JSONObjectWriter) {
        writer.add("content", raw: content)
        if !files.isEmpty { writer.add("files", raw: JSONObjectWriter.array(files.map(\.json))) }
        writer.add("isExplicit", isExplicit)
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
public struct LearningFile: Hashable, Sendable {
    /// What the content calls it.
    public var url: String
    /// Its content: `FileStore.read(_:)` for the bytes, `FileStore.path(of:)` for a path.
    public var file: FileID
    /// Bytes of the content.
    public var size: Int

    /// Creates a description of a file that is in the file store.
    public init(url: String, file: FileID, size: Int) {
        self.url = url
        self.file = file
        self.size = size
    }

    var json: [UInt8] {
        var writer = JSONObjectWriter()
        writer.add("url", url)
        writer.add("file", file.description)
        writer.add("size", size)
        return writer.finished()
    }
}

// What there is to learn: courses with their lessons, in order, without the lessons' contents. Comes
// from the app's server; kept by LearningView. Spec/model/learning.md, LRN-3.

import Daybook

/// What somebody learns, and in which language it is explained.
public struct LanguageCombination: Hashable, Sendable {
    /// The language that is learned: `es`.
    public var learnLanguage: String
    /// The language in which it is taught: `de`.
    public var displayLanguage: String

    /// Creates a combination.
    public init(learn learnLanguage: String, display displayLanguage: String) {
        self.learnLanguage = learnLanguage
        self.displayLanguage = displayLanguage
    }

    init(_ fields: JSONFields) throws(EventError) {
        learnLanguage = try fields.identifier("learnLanguage")
        displayLanguage = try fields.identifier("displayLanguage")
    }

    func add(to writer: inout JSONObjectWriter) {
        writer.add("learnLanguage", learnLanguage)
        writer.add("displayLanguage", displayLanguage)
    }

    var keys: (learn: EntityID, display: EntityID) {
        (EntityID(learnLanguage), EntityID(displayLanguage))
    }

    /// Byte by byte: Swift takes two spellings of one accent for equal.
    public static func == (lhs: LanguageCombination, rhs: LanguageCombination) -> Bool {
        lhs.keys == rhs.keys
    }

    /// Hashes the bytes.
    public func hash(into hasher: inout Hasher) {
        hasher.combine(keys.learn)
        hasher.combine(keys.display)
    }
}

/// A course of the graph.
public struct ListedCourse: Hashable, Sendable, Identifiable {
    /// The course.
    public var id: String
    /// Its name, as users read it; nil if nothing is known.
    public var title: String?
    /// Its lessons, in the order in which they are learned.
    public var lessons: [ListedLesson]

    /// Creates a course.
    public init(id: String, title: String? = nil, lessons: [ListedLesson]) {
        self.id = id
        self.title = title
        self.lessons = lessons
    }

    init(_ fields: JSONFields) throws(EventError) {
        id = try fields.identifier("id")
        title = try fields.optionalString("title")
        lessons = []
        for lesson in try fields.required(try fields.objects("lessons"), "lessons") {
            lessons.append(
                ListedLesson(
                    id: try lesson.identifier("id"), title: try lesson.optionalString("title")))
        }
        try requireUnique(lessons.map(\.id), "\(fields.place): the lesson")
    }

    var json: [UInt8] {
        var writer = JSONObjectWriter()
        writer.add("id", id)
        if let title { writer.add("title", title) }
        writer.add("lessons", raw: JSONObjectWriter.array(lessons.map(\.json)))
        return writer.finished()
    }
}

/// A lesson of a course.
public struct ListedLesson: Hashable, Sendable, Identifiable {
    /// The lesson.
    public var id: String
    /// Its name, as users read it; nil if nothing is known.
    public var title: String?

    /// Creates a lesson.
    public init(id: String, title: String? = nil) {
        self.id = id
        self.title = title
    }

    fileprivate var json: [UInt8] {
        var writer = JSONObjectWriter()
        writer.add("id", id)
        if let title { writer.add("title", title) }
        return writer.finished()
    }
}

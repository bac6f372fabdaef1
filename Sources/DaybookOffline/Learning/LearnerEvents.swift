// What is known of a learner beside the progress: basic information, the language combination, the
// courses that it leads to, the vocabulary. Facts about this device: none of it is shipped.
// Spec/model/events.md, EVT-7.

import Daybook

/// What is known of a user was stored. It replaces what was known before.
public struct UserStored: EventPayload, Hashable {
    public static let type = "daybook.user.stored"
    /// The user.
    public var userId: String
    /// What the app wants to know of the user offline: the text of a JSON object, kept as it is.
    public var info: [UInt8]?

    /// Creates the event's data.
    public init(userId: String, info: [UInt8]? = nil) {
        self.userId = userId
        self.info = info
    }

    public init(json: [UInt8]) throws {
        let fields = try JSONFields(json)
        userId = try fields.identifier("userId")
        info = fields.raw("info")
        _ = try fields.object("info")
    }

    public var subject: String? { userId }

    public func json() -> [UInt8] {
        var writer = JSONObjectWriter()
        writer.add("userId", userId)
        if let info { writer.add("info", raw: info) }
        return writer.finished()
    }
}

/// A user chose what to learn, and in which language.
public struct CombinationSelected: EventPayload, Hashable {
    public static let type = "daybook.combination.selected"
    /// The user.
    public var userId: String
    /// What was chosen.
    public var combination: LanguageCombination

    /// Creates the event's data.
    public init(userId: String, combination: LanguageCombination) {
        self.userId = userId
        self.combination = combination
    }

    public init(json: [UInt8]) throws {
        let fields = try JSONFields(json)
        userId = try fields.identifier("userId")
        combination = try LanguageCombination(fields)
    }

    public var subject: String? { userId }

    public func json() -> [UInt8] {
        var writer = JSONObjectWriter()
        writer.add("userId", userId)
        combination.add(to: &writer)
        return writer.finished()
    }
}

/// The courses of a language combination were fetched. They replace those before.
public struct CoursesListed: EventPayload, Hashable {
    public static let type = "daybook.courses.listed"
    /// What they are for.
    public var combination: LanguageCombination
    /// The courses, in the order in which they were given.
    public var courses: [ListedCourse]

    /// Creates the event's data.
    public init(combination: LanguageCombination, courses: [ListedCourse]) {
        self.combination = combination
        self.courses = courses
    }

    public init(json: [UInt8]) throws {
        let fields = try JSONFields(json)
        combination = try LanguageCombination(fields)
        courses = try fields.required(try fields.objects("courses"), "courses")
            .map { try ListedCourse($0) }
        try requireUnique(courses.map(\.id), "data.courses: the course")
    }

    public var subject: String? { combination.learnLanguage }

    public func json() -> [UInt8] {
        var writer = JSONObjectWriter()
        combination.add(to: &writer)
        writer.add("courses", raw: JSONObjectWriter.array(courses.map(\.json)))
        return writer.finished()
    }
}

/// Vocabulary of a user was cached. It replaces what was cached before.
public struct VocabularyCached: EventPayload, Hashable {
    public static let type = "daybook.vocabulary.cached"
    /// The user.
    public var userId: String
    /// Of which languages.
    public var combination: LanguageCombination
    /// The items, in the order in which they were given.
    public var items: [VocabularyItem]

    /// Items that are cached at most.
    public static let itemsMax = 200

    /// Creates the event's data.
    public init(userId: String, combination: LanguageCombination, items: [VocabularyItem]) {
        self.userId = userId
        self.combination = combination
        self.items = items
    }

    public init(json: [UInt8]) throws {
        let fields = try JSONFields(json)
        userId = try fields.identifier("userId")
        combination = try LanguageCombination(fields)
        items = try fields.required(try fields.objects("items"), "items")
            .map { VocabularyItem(id: try $0.identifier("id"), json: $0.text) }
        guard items.count <= Self.itemsMax else {
            throw EventError(.invalidData, "data.items has more than \(Self.itemsMax) items")
        }
        try requireUnique(items.map(\.id), "data.items: the item")
    }

    public var subject: String? { userId }

    public func json() -> [UInt8] {
        var writer = JSONObjectWriter()
        writer.add("userId", userId)
        combination.add(to: &writer)
        writer.add("items", raw: JSONObjectWriter.array(items.map(\.json)))
        return writer.finished()
    }
}

/// A word or phrase that a user learns.
public struct VocabularyItem: Hashable, Sendable, Identifiable {
    /// The item. Unique in a vocabulary.
    public let id: String
    /// The item as the server describes it: the text of a JSON object with a member `id`.
    public let json: [UInt8]

    /// Reads an item's JSON; whatever is in it beside the `id` is kept as it is.
    ///
    /// - Throws: `EventError` (`invalidData`) for anything but an object with an identifier `id`.
    public init(json: [UInt8]) throws(EventError) {
        id = try JSONFields(json, place: "item").identifier("id")
        self.json = json
    }

    fileprivate init(id: String, json: [UInt8]) {
        self.id = id
        self.json = json
    }
}

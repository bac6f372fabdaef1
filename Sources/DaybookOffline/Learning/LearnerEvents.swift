// What is known of a learner beside the progress: basic information, the language combination, the
// courses that it leads to, the vocabulary. Facts about this device: none of it is shipped.
// Spec/model/events.md, EVT-7.

import Daybook

/// What is known of a user was stored. It replaces what was known before.
public struct UserStored: DeclaredPayload, Hashable {
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

    public static var example: Self {
        Self(userId: "-")
    }

    public mutating func declareMembers(_ members: inout some MemberVisitor) throws(EventError) {
        try members.required("userId", &userId, .identifier)
        try members.optional("info", &info, .writtenObject)
    }

    public var subject: String? { userId }
}

/// A user chose what to learn, and in which language.
public struct CombinationSelected: DeclaredPayload, Hashable {
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

    public static var example: Self {
        Self(userId: "-", combination: .example)
    }

    public mutating func declareMembers(_ members: inout some MemberVisitor) throws(EventError) {
        try members.required("userId", &userId, .identifier)
        try combination.declareMembers(&members)
    }

    public var subject: String? { userId }
}

/// The courses of a language combination were fetched. They replace those before.
public struct CoursesListed: DeclaredPayload, Hashable {
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

    public static var example: Self {
        Self(combination: .example, courses: [])
    }

    public mutating func declareMembers(_ members: inout some MemberVisitor) throws(EventError) {
        try combination.declareMembers(&members)
        try members.required("courses", &courses, .objects(ListedCourse.self, uniqueBy: "id"))
    }

    public var subject: String? { combination.learnLanguage }
}

/// Vocabulary of a user was cached. It replaces what was cached before.
public struct VocabularyCached: DeclaredPayload, Hashable {
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

    public static var example: Self {
        Self(userId: "-", combination: .example, items: [])
    }

    public mutating func declareMembers(_ members: inout some MemberVisitor) throws(EventError) {
        try members.required("userId", &userId, .identifier)
        try combination.declareMembers(&members)
        try members.required("items", &items, VocabularyItems())
    }

    public var subject: String? { userId }
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

/// Vocabulary: objects with an `id`, kept as they are written.
private struct VocabularyItems: MemberKind {
    func read(_ name: StaticString, in object: JSONFields) throws(EventError) -> [VocabularyItem] {
        var items: [VocabularyItem] = []
        for item in try object.required(try object.objects(name), name) {
            items.append(VocabularyItem(id: try item.identifier("id"), json: item.text))
        }
        guard items.count <= VocabularyCached.itemsMax else {
            throw EventError(
                .invalidData,
                "\(object.place).\(name) has more than \(VocabularyCached.itemsMax) items")
        }
        try requireUnique(items.map(\.id), "\(object.place).\(name): the item")
        return items
    }

    func write(
        _ value: [VocabularyItem], _ name: StaticString, to object: inout JSONObjectWriter
    ) throws(EventError) {
        object.add(member: name, raw: JSONObjectWriter.array(value.map(\.json)))
    }

    var schema: MemberSchema.Kind {
        .list(.object(ObjectSchema(of: Named.self)), 0...VocabularyCached.itemsMax, uniqueBy: "id")
    }

    /// The required members of an item.
    private struct Named: DeclaredObject {
        var id = "-"
        static var example: Self { Self() }
        mutating func declareMembers(_ members: inout some MemberVisitor) throws(EventError) {
            try members.required("id", &id, .identifier)
        }
    }
}

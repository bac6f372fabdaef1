// The events of a learner other than progress: information about the user, the language combination, its
// courses, the vocabulary. They concern this device only and are not shipped.
// Spec/model/events.md, EVT-7.

import Daybook

/// Information about a user was stored. It replaces the previous information.
public struct UserStored: DeclaredPayload, Hashable {
    public static let type = "daybook.user.stored"
    /// The user.
    public var userId: String
    /// The information that the app needs offline: the text of a JSON object, stored unchanged.
    public var info: [UInt8]?

    public var subject: String? { userId }
}

/// A user chose a language combination.
public struct CombinationSelected: DeclaredPayload, Hashable {
    public static let type = "daybook.combination.selected"
    /// The user.
    public var userId: String
    /// The chosen combination.
    public var combination: LanguageCombination  // its members

    public var subject: String? { userId }
}

/// The courses of a language combination were fetched. They replace the previous ones.
public struct CoursesListed: DeclaredPayload, Hashable {
    public static let type = "daybook.courses.listed"
    /// The combination of the courses.
    public var combination: LanguageCombination  // its members
    /// The courses, in the given order.
    public var courses: [ListedCourse]  // .objects(ListedCourse.self, uniqueBy: "id")

    public var subject: String? { combination.learnLanguage }
}

/// Vocabulary of a user was cached. It replaces the previous vocabulary.
public struct VocabularyCached: DeclaredPayload, Hashable {
    public static let type = "daybook.vocabulary.cached"
    /// The user.
    public var userId: String
    /// The combination of the vocabulary.
    public var combination: LanguageCombination  // its members
    /// The items, in the given order.
    public var items: [VocabularyItem]  // VocabularyItems()

    /// The greatest number of cached items.
    public static let itemsMax = 200

    public var subject: String? { userId }
}

/// A word or phrase that a user learns.
public struct VocabularyItem: Hashable, Sendable, Identifiable {
    /// The item's id, unique in a vocabulary.
    public let id: String
    /// The item as the server describes it: the text of a JSON object with a member `id`.
    public let json: [UInt8]

    /// Reads an item's JSON. Members other than `id` are stored unchanged.
    ///
    /// - Throws: `EventError` (`invalidData`) for anything but an object with an identifier `id`.
    public init(json: [UInt8]) throws(EventError) {
        id = try JSONFields(json, path: "item").identifier("id")
        self.json = json
    }

    fileprivate init(id: String, json: [UInt8]) {
        self.id = id
        self.json = json
    }
}

/// Vocabulary: objects with an `id`, stored unchanged.
struct VocabularyItems: MemberKind {
    func read(_ name: StaticString, in object: JSONFields) throws(EventError) -> [VocabularyItem] {
        var items: [VocabularyItem] = []
        for item in try object.required(try object.objects(name), name) {
            items.append(VocabularyItem(id: try item.identifier("id"), json: item.text))
        }
        guard items.count <= VocabularyCached.itemsMax else {
            throw EventError(
                .invalidData,
                "\(object.path).\(name) has more than \(VocabularyCached.itemsMax) items")
        }
        try requireUnique(items.map(\.id), "\(object.path).\(name): the item")
        return items
    }

    func write(
        _ value: [VocabularyItem], _ name: StaticString, to object: inout JSONObjectWriter
    ) throws(EventError) {
        object.appendMember(literal: name, raw: JSONObjectWriter.array(value.map(\.json)))
    }

    var schema: MemberSchema.Kind {
        .list(.object(ObjectSchema(of: Named.self)), 0...VocabularyCached.itemsMax, uniqueBy: "id")
    }

    /// The required members of an item.
    struct Named: DeclaredObject {
        var id: String
    }
}

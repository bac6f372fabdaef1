// The course graph: courses with their lessons, in order, without the lessons' contents. It comes from the
// app's server and is stored in LearningView. Spec/model/learning.md, LRN-3.

import Daybook

/// The language that a user learns, and the one in which it is taught.
public struct LanguageCombination: DeclaredObject, Hashable {
    /// The language that is learned: `es`.
    public var learnLanguage: String
    /// The language in which it is taught: `de`.
    public var displayLanguage: String

    /// Creates a combination.
    public init(learn learnLanguage: String, display displayLanguage: String) {
        self.learnLanguage = learnLanguage
        self.displayLanguage = displayLanguage
    }

    public static var example: Self {
        Self(learn: "-", display: "-")
    }

    var keys: (learn: EntityID, display: EntityID) {
        (EntityID(learnLanguage), EntityID(displayLanguage))
    }

    /// Compares the bytes, because `String` compares canonical equivalents as equal.
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
public struct ListedCourse: DeclaredObject, Hashable, Identifiable {
    /// The course's id.
    public var id: String
    /// The name for users; nil if unknown.
    public var title: String?  // .text
    /// Its lessons, in the order in which they are learned.
    public var lessons: [ListedLesson]  // .objects(ListedLesson.self, uniqueBy: "id")
}

/// A lesson of a course.
public struct ListedLesson: DeclaredObject, Hashable, Identifiable {
    /// The lesson's id.
    public var id: String
    /// The name for users; nil if unknown.
    public var title: String?  // .text
}

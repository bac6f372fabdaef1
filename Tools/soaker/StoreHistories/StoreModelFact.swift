// The content of an event in the model, and its encoding as JSON. Drawn by the generators, folded by
// StoreModelViews.

import DaybookOffline
import DaybookTestKit
import Foundation

/// The content of an event.
package enum Fact: Hashable, Sendable {
    case city(user: Text, city: Text, isSaved: Bool)
    case noteAdded(note: Text, city: Text, content: Text, user: Text)
    case noteUpdated(note: Text, content: Text, user: Text)
    case noteDeleted(note: Text, user: Text)
    /// Values by setting; a flag is 0 or 1.
    case preferences(user: Text, [String: Int])
    case course(user: Text, course: Text)
    /// The score in quarters.
    case lesson(user: Text, course: Text, lesson: Text, score: Int?)
    case review(user: Text, course: Text, review: Text, seen: Int, correct: Int)
    /// An event of the app's own type. It is shipped if the app has the rule.
    case trip(name: Text)
    /// Content that no view reads.
    case other

    /// The names of the flags.
    static let flags = [
        "autoDownloadEnabled", "autoSync", "showStaleDataWarning", "wifiOnlyDownload",
    ]
    /// The names of the other settings.
    static let numbers = ["maxStorageLimit", "pruneAfterDays"]

    package var type: String {
        switch self {
        case .city(_, _, let isSaved): isSaved ? "daybook.city.saved" : "daybook.city.unsaved"
        case .noteAdded: "daybook.note.added"
        case .noteUpdated: "daybook.note.updated"
        case .noteDeleted: "daybook.note.deleted"
        case .preferences: "daybook.preferences.updated"
        case .course: "daybook.course.activated"
        case .lesson: "daybook.lesson.completed"
        case .review: "daybook.review.completed"
        case .trip: TripPlanned.type
        case .other: "com.example.other"
        }
    }

    /// The subject and the lane by the rule of the type; nil for types without a built-in rule.
    var subjectAndLane: (subject: Text, lane: Text)? {
        func lane(_ parts: Text...) -> Text { Text(parts.map(\.string).joined(separator: ":")) }
        switch self {
        case .city(let user, let city, _): return (city, lane(Text("city"), user, city))
        case .noteAdded(let note, _, _, _), .noteUpdated(let note, _, _), .noteDeleted(let note, _):
            return (note, lane(Text("note"), note))
        case .preferences(let user, _): return (user, lane(Text("preferences"), user))
        case .course(let user, _): return (user, lane(Text("course"), user))
        case .lesson(let user, _, let lesson, _):
            return (lesson, lane(Text("lesson"), user, lesson))
        case .review(let user, _, let review, _, _):
            return (review, lane(Text("review"), user, review))
        case .trip, .other: return nil
        }
    }

    /// The action; nil for types without a built-in rule.
    var action: String? {
        switch self {
        case .city(_, _, let isSaved): isSaved ? "SAVE_CITY" : "UNSAVE_CITY"
        case .noteAdded: "ADD_NOTE"
        case .noteUpdated: "UPDATE_NOTE"
        case .noteDeleted: "DELETE_NOTE"
        case .preferences: "UPDATE_PREFERENCES"
        case .course: "ACTIVATE_COURSE"
        case .lesson: "COMPLETE_LESSON"
        case .review: "COMPLETE_REVIEW"
        case .trip, .other: nil
        }
    }

    /// A member of the data: a text, or raw JSON.
    fileprivate enum Member {
        case text(String, Text)
        case raw(String, String)
    }

    fileprivate var members: [Member] {
        switch self {
        case .city(let user, let city, _): return [.text("userId", user), .text("cityId", city)]
        case .noteAdded(let note, let city, let content, let user):
            return [
                .text("noteId", note), .text("cityId", city), .text("content", content),
                .text("createdBy", user),
            ]
        case .noteUpdated(let note, let content, let user):
            return [.text("noteId", note), .text("content", content), .text("updatedBy", user)]
        case .noteDeleted(let note, let user):
            return [.text("noteId", note), .text("deletedBy", user)]
        case .preferences(let user, let changes):
            let list = changes.sorted { $0.key < $1.key }.map { name, value in
                "\"\(name)\":" + (Self.flags.contains(name) ? "\(value == 1)" : "\(value)")
            }
            return [
                .text("userId", user), .raw("changes", "{" + list.joined(separator: ",") + "}"),
            ]
        case .course(let user, let course):
            return [.text("userId", user), .text("courseId", course)]
        case .lesson(let user, let course, let lesson, let score):
            return [
                .text("userId", user), .text("courseId", course), .text("lessonId", lesson),
            ] + (score.map { [.raw("score", "\(Double($0) / 4)")] } ?? [])
        case .review(let user, let course, let review, let seen, let correct):
            return [
                .text("userId", user), .text("courseId", course), .text("reviewId", review),
                .raw("itemsSeen", "\(seen)"), .raw("itemsCorrect", "\(correct)"),
            ]
        case .trip(let name): return [.text("name", name)]
        case .other: return []
        }
    }

    /// Whether an identifier contains U+0000, which the built-in types refuse.
    var containsNUL: Bool {
        self.type != TripPlanned.type
            && members.contains { member in
                if case .text(let name, let text) = member, name != "content" {
                    return text.bytes.contains(0)
                }
                return false
            }
    }

    /// Whether JSON encodes exactly these members, as parsed by Foundation.
    func isEncoded(by json: [UInt8]) throws -> Bool {
        guard let object = try JSONSerialization.jsonObject(with: Data(json)) as? [String: Any]
        else { return false }
        return try members.count == object.count
            && members.allSatisfy { member in
                switch member {
                case .text(let name, let text):
                    // Foundation's parser drops a byte order mark at the start of a string.
                    let parsed = (object[name] as? String).map(Text.init)
                    return parsed == text || parsed.map { Text("\u{FEFF}" + $0.string) } == text
                case .raw(let name, let json):
                    let expected =
                        try JSONSerialization.jsonObject(
                            with: Data("[\(json)]".utf8)) as? [Any]
                    guard let value = object[name], let first = expected?.first else {
                        return false
                    }
                    return NSArray(object: value).isEqual(NSArray(object: first))
                }
            }
    }
}

extension Choices {
    /// Draws one way to write the data of a fact: members in any order, unknown members, white space. A lone
    /// surrogate changes the fact.
    mutating func spelled(_ fact: Fact) -> (fact: Fact, json: String) {
        var names: [String: Text] = [:]
        var parts = fact.members.map { member in
            switch member {
            case .raw(let name, let json): return "\"\(name)\":\(json)"
            case .text(let name, let text):
                // Foundation decodes the app's own type, and refuses lone surrogates.
                let spelled =
                    fact.type == TripPlanned.type
                    ? SpelledText(text: text, json: Spelling.fullyEscaped(text)) : spelled(text)
                names[name] = spelled.text
                return "\"\(name)\":\(spelled.json)"
            }
        }
        if bool(oneIn: 6) { parts.append(#""more":{"a":[1,null,"\u00e9"],"b":-0.0e5}"#) }
        if bool(oneIn: 4) { parts.reverse() }
        let space = bool(oneIn: 6) ? element(of: [" ", "\t", "\n", "\r\n "]) : ""
        return (
            fact.replacingTexts(names),
            "{\(space)" + parts.joined(separator: ",\(space)") + "\(space)}"
        )
    }

}

extension Fact {
    /// The fact with some members' texts replaced.
    fileprivate func replacingTexts(_ names: [String: Text]) -> Fact {
        func text(_ name: String, _ old: Text) -> Text { names[name] ?? old }
        switch self {
        case .city(let user, let city, let isSaved):
            return .city(user: text("userId", user), city: text("cityId", city), isSaved: isSaved)
        case .noteAdded(let note, let city, let content, let user):
            return .noteAdded(
                note: text("noteId", note), city: text("cityId", city),
                content: text("content", content), user: text("createdBy", user))
        case .noteUpdated(let note, let content, let user):
            return .noteUpdated(
                note: text("noteId", note), content: text("content", content),
                user: text("updatedBy", user))
        case .noteDeleted(let note, let user):
            return .noteDeleted(note: text("noteId", note), user: text("deletedBy", user))
        case .preferences(let user, let changes):
            return .preferences(user: text("userId", user), changes)
        case .course(let user, let course):
            return .course(user: text("userId", user), course: text("courseId", course))
        case .lesson(let user, let course, let lesson, let score):
            return .lesson(
                user: text("userId", user), course: text("courseId", course),
                lesson: text("lessonId", lesson), score: score)
        case .review(let user, let course, let review, let seen, let correct):
            return .review(
                user: text("userId", user), course: text("courseId", course),
                review: text("reviewId", review), seen: seen, correct: correct)
        case .trip(let name): return .trip(name: text("name", name))
        case .other: return .other
        }
    }

    /// The library's payload of the fact.
    var payload: (any EventPayload)? {
        switch self {
        case .city(let user, let city, true):
            return CitySaved(userId: user.string, cityId: city.string)
        case .city(let user, let city, false):
            return CityUnsaved(userId: user.string, cityId: city.string)
        case .noteAdded(let note, let city, let content, let user):
            return NoteAdded(
                noteId: note.string, cityId: city.string, content: content.string,
                createdBy: user.string)
        case .noteUpdated(let note, let content, let user):
            return NoteUpdated(
                noteId: note.string, content: content.string, updatedBy: user.string)
        case .noteDeleted(let note, let user):
            return NoteDeleted(noteId: note.string, deletedBy: user.string)
        case .preferences(let user, let changes):
            var new = PreferencesUpdated.Changes()
            new.autoDownloadEnabled = changes["autoDownloadEnabled"].map { $0 == 1 }
            new.autoSync = changes["autoSync"].map { $0 == 1 }
            new.showStaleDataWarning = changes["showStaleDataWarning"].map { $0 == 1 }
            new.wifiOnlyDownload = changes["wifiOnlyDownload"].map { $0 == 1 }
            new.maxStorageLimit = changes["maxStorageLimit"]
            new.pruneAfterDays = changes["pruneAfterDays"]
            return PreferencesUpdated(userId: user.string, changes: new)
        case .course(let user, let course):
            return CourseActivated(userId: user.string, courseId: course.string)
        case .lesson(let user, let course, let lesson, let score):
            return LessonCompleted(
                userId: user.string, courseId: course.string, lessonId: lesson.string,
                score: score.map { Double($0) / 4 })
        case .review(let user, let course, let review, let seen, let correct):
            return ReviewCompleted(
                userId: user.string, courseId: course.string, reviewId: review.string,
                itemsSeen: seen, itemsCorrect: correct)
        case .trip(let name): return TripPlanned(name: name.string)
        case .other: return nil
        }
    }
}

/// An event of the app's own type, which is shipped.
struct TripPlanned: EventPayload, Codable {
    static let type = "com.example.trip.planned"
    var name: String
    var subject: String? { name }
    var lane: String? { "trip:\(name)" }
}

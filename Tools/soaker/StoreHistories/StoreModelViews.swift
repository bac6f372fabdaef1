// The expected states of the views: dictionaries of registers that are set line by line, without the
// library's views. Spec/model/views.md.

/// A value and the event that set it.
struct ModelRegister<Value: Hashable & Sendable>: Sendable {
    var value: Value
    var lwwTimestamp: ModelLWWTimestamp
}

extension Optional {
    mutating func set<Value>(_ value: Value, _ lwwTimestamp: ModelLWWTimestamp)
    where Wrapped == ModelRegister<Value> {
        if let old = self, old.lwwTimestamp > lwwTimestamp { return }
        self = ModelRegister(value: value, lwwTimestamp: lwwTimestamp)
    }
}

/// The states of all built-in views except the outbox.
struct ModelViews: Sendable {
    struct Mark: Hashable, Sendable {
        var user: Text
        var city: Text
    }

    struct Origin: Hashable, Sendable {
        var city: Text
        var user: Text
    }

    struct Content: Hashable, Sendable {
        var content: Text
        var line: UInt64
    }

    struct Note: Sendable {
        var isDeleted = false
        var origin: ModelRegister<Origin>?
        var content: ModelRegister<Content>?
    }

    struct Lesson: Hashable, Sendable {
        var user: Text
        var course: Text
        var lesson: Text
    }

    struct Completion: Sendable {
        var first: ModelLWWTimestamp
        var best: Int?
    }

    struct Review: Hashable, Sendable {
        var course: Text
        var seen: Int
        var correct: Int
    }

    struct ReviewKey: Hashable, Sendable {
        var user: Text
        var review: Text
    }

    var marks: [Mark: ModelRegister<Bool>] = [:]
    var notes: [Text: Note] = [:]
    var settings: [Text: [String: ModelRegister<Int>]] = [:]
    var courses: [Text: ModelRegister<Text>] = [:]
    var lessons: [Lesson: Completion] = [:]
    var reviews: [ReviewKey: ModelRegister<Review>] = [:]
    /// The lowest LWW timestamp of the completions of each review.
    var firstReviews: [ReviewKey: ModelLWWTimestamp] = [:]

    mutating func fold(_ line: ModelLine) {
        let lwwTimestamp = line.lwwTimestamp
        switch line.draft.fact {
        case .city(let user, let city, let isSaved):
            marks[Mark(user: user, city: city)].set(isSaved, lwwTimestamp)
        case .noteAdded(let note, let city, let content, let user):
            notes[note, default: Note()].origin.set(Origin(city: city, user: user), lwwTimestamp)
            notes[note]?.content.set(Content(content: content, line: line.position), lwwTimestamp)
        case .noteUpdated(let note, let content, _):
            notes[note, default: Note()].content
                .set(Content(content: content, line: line.position), lwwTimestamp)
        case .noteDeleted(let note, _): notes[note, default: Note()].isDeleted = true
        case .preferences(let user, let changes):
            for (name, value) in changes {
                settings[user, default: [:]][name].set(value, lwwTimestamp)
            }
        case .course(let user, let course): courses[user].set(course, lwwTimestamp)
        case .lesson(let user, let course, let lesson, let score):
            let key = Lesson(user: user, course: course, lesson: lesson)
            var completion = lessons[key] ?? Completion(first: lwwTimestamp)
            completion.first = min(completion.first, lwwTimestamp)
            if let score { completion.best = max(completion.best ?? 0, score) }
            lessons[key] = completion
        case .review(let user, let course, let review, let seen, let correct):
            let key = ReviewKey(user: user, review: review)
            reviews[key].set(Review(course: course, seen: seen, correct: correct), lwwTimestamp)
            firstReviews[key] = min(firstReviews[key] ?? lwwTimestamp, lwwTimestamp)
        case .trip, .other: break
        }
    }

    /// The greatest LWW timestamp of the values that a command replaces.
    func timestampReplaced(by fact: Fact) -> ModelLWWTimestamp? {
        switch fact {
        case .city(let user, let city, _): marks[Mark(user: user, city: city)]?.lwwTimestamp
        case .noteUpdated(let note, _, _), .noteDeleted(let note, _):
            notes[note]?.content?.lwwTimestamp
        case .preferences(let user, let changes):
            changes.keys.compactMap { settings[user]?[$0]?.lwwTimestamp }.max()
        case .course(let user, _): courses[user]?.lwwTimestamp
        case .review(let user, _, let review, _, _):
            reviews[ReviewKey(user: user, review: review)]?.lwwTimestamp
        case .noteAdded, .lesson, .trip, .other: nil
        }
    }

    // MARK: Queries

    func savers(of city: Text) -> [Text] {
        marks.filter { $0.key.city == city && $0.value.value }.map(\.key.user).sorted()
    }

    func cities(of user: Text) -> [Text] {
        marks.filter { $0.key.user == user && $0.value.value }.map(\.key.city).sorted()
    }

    var savedCities: [Text] {
        Set(marks.filter { $0.value.value }.map(\.key.city)).sorted()
    }

    func isSaved(_ city: Text, by user: Text) -> Bool {
        marks[Mark(user: user, city: city)]?.value ?? false
    }

    /// A note that was added and not deleted.
    func liveNote(_ note: Text) -> (origin: ModelRegister<Origin>, content: ModelRegister<Content>)?
    {
        guard let entry = notes[note], !entry.isDeleted, let origin = entry.origin,
            let content = entry.content
        else { return nil }
        return (origin, content)
    }

    func isDeleted(_ note: Text) -> Bool { notes[note]?.isDeleted ?? false }

    func notes(in city: Text) -> [Text] {
        notes.keys.filter { liveNote($0)?.origin.value.city == city }
            .sorted { (time($0), $0) < (time($1), $1) }
    }

    private func time(_ note: Text) -> Int64 { notes[note]?.origin?.lwwTimestamp.time ?? 0 }

    func setting(_ name: String, of user: Text) -> Int {
        let defaults = [
            "autoDownloadEnabled": 0, "wifiOnlyDownload": 1, "maxStorageLimit": 104_857_600,
            "autoSync": 1, "showStaleDataWarning": 1, "pruneAfterDays": 7,
        ]
        return settings[user]?[name]?.value ?? defaults[name] ?? 0
    }

    /// The courses of a user: numbers of lessons, reviews, items seen, and items correct.
    func progress(of user: Text) -> [Text: [Int]] {
        var courses: [Text: [Int]] = [:]
        for key in lessons.keys where key.user == user {
            courses[key.course, default: [0, 0, 0, 0]][0] += 1
        }
        for (key, review) in reviews where key.user == user {
            courses[review.value.course, default: [0, 0, 0, 0]][1] += 1
            courses[review.value.course]?[2] += review.value.seen
            courses[review.value.course]?[3] += review.value.correct
        }
        return courses
    }

    /// All users, and all cities, of any event.
    var users: Set<Text> {
        Set(marks.keys.map(\.user)).union(settings.keys).union(courses.keys)
            .union(lessons.keys.map(\.user)).union(reviews.keys.map(\.user))
    }
    var cities: Set<Text> {
        Set(marks.keys.map(\.city)).union(notes.values.compactMap(\.origin?.value.city))
    }
}

// What the views must say: dictionaries that are set line by line. Registers only; nothing of the
// library's views. Spec/model/views.md. Filled by StoreModel; compared by StoreHistory.

/// A value and the event that set it.
struct ModelRegister<Value: Hashable & Sendable>: Sendable {
    var value: Value
    var stamp: ModelStamp
}

extension Optional {
    mutating func set<Value>(_ value: Value, _ stamp: ModelStamp)
    where Wrapped == ModelRegister<Value> {
        if let old = self, old.stamp > stamp { return }
        self = ModelRegister(value: value, stamp: stamp)
    }
}

/// The state of all built-in views but the outbox.
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
        var first: ModelStamp
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
    /// The least stamp of all completions of each session.
    var firstReviews: [ReviewKey: ModelStamp] = [:]

    mutating func add(_ line: ModelLine) {
        let stamp = line.stamp
        switch line.draft.fact {
        case .city(let user, let city, let isSaved):
            marks[Mark(user: user, city: city)].set(isSaved, stamp)
        case .noteAdded(let note, let city, let content, let user):
            notes[note, default: Note()].origin.set(Origin(city: city, user: user), stamp)
            notes[note]?.content.set(Content(content: content, line: line.position), stamp)
        case .noteUpdated(let note, let content, _):
            notes[note, default: Note()].content
                .set(Content(content: content, line: line.position), stamp)
        case .noteDeleted(let note, _): notes[note, default: Note()].isDeleted = true
        case .preferences(let user, let changes):
            for (name, value) in changes { settings[user, default: [:]][name].set(value, stamp) }
        case .course(let user, let course): courses[user].set(course, stamp)
        case .lesson(let user, let course, let lesson, let score):
            let key = Lesson(user: user, course: course, lesson: lesson)
            var completion = lessons[key] ?? Completion(first: stamp)
            completion.first = min(completion.first, stamp)
            if let score { completion.best = max(completion.best ?? 0, score) }
            lessons[key] = completion
        case .review(let user, let course, let review, let seen, let correct):
            let key = ReviewKey(user: user, review: review)
            reviews[key].set(Review(course: course, seen: seen, correct: correct), stamp)
            firstReviews[key] = min(firstReviews[key] ?? stamp, stamp)
        case .trip, .other: break
        }
    }

    /// The greatest stamp of the values that a command replaces.
    func stampReplaced(by fact: Fact) -> ModelStamp? {
        switch fact {
        case .city(let user, let city, _): marks[Mark(user: user, city: city)]?.stamp
        case .noteUpdated(let note, _, _), .noteDeleted(let note, _): notes[note]?.content?.stamp
        case .preferences(let user, let changes):
            changes.keys.compactMap { settings[user]?[$0]?.stamp }.max()
        case .course(let user, _): courses[user]?.stamp
        case .review(let user, _, let review, _, _):
            reviews[ReviewKey(user: user, review: review)]?.stamp
        case .noteAdded, .lesson, .trip, .other: nil
        }
    }

    // MARK: What is asked

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

    /// A note that lives.
    func live(_ note: Text) -> (origin: ModelRegister<Origin>, content: ModelRegister<Content>)? {
        guard let entry = notes[note], !entry.isDeleted, let origin = entry.origin,
            let content = entry.content
        else { return nil }
        return (origin, content)
    }

    func notes(in city: Text) -> [Text] {
        notes.keys.filter { live($0)?.origin.value.city == city }
            .sorted { (time($0), $0) < (time($1), $1) }
    }

    private func time(_ note: Text) -> Int64 { notes[note]?.origin?.stamp.time ?? 0 }

    func setting(_ name: String, of user: Text) -> Int {
        let defaults = [
            "autoDownloadEnabled": 0, "wifiOnlyDownload": 1, "maxStorageLimit": 104_857_600,
            "autoSync": 1, "showStaleDataWarning": 1, "pruneAfterDays": 7,
        ]
        return settings[user]?[name]?.value ?? defaults[name] ?? 0
    }

    /// Courses of a learner: lessons, reviews, items seen, items right.
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

    /// Everything that can be asked for by name.
    var users: Set<Text> {
        Set(marks.keys.map(\.user)).union(settings.keys).union(courses.keys)
            .union(lessons.keys.map(\.user)).union(reviews.keys.map(\.user))
    }
    var cities: Set<Text> {
        Set(marks.keys.map(\.city)).union(notes.values.compactMap(\.origin?.value.city))
    }
}

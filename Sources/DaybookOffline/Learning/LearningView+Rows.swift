// LearningView as tools show it: courses, then lessons, then users. Spec/model/views.md, VIEW-24.

import Daybook

extension LearningView {
    public func rows() -> [ViewRow] { courseRows + storedLessons.map(\.row) + userRows }

    private var courseRows: [ViewRow] {
        courses.sorted { $0.key < $1.key }.flatMap { learn, byDisplay in
            byDisplay.sorted { $0.key < $1.key }.map { display, register in
                var row = ViewRow()
                row.add("kind", "courses")
                row.add("learnLanguage", learn.string)
                row.add("displayLanguage", display.string)
                row.add("courses", objects: register.value)
                return row
            }
        }
    }

    private var userRows: [ViewRow] {
        learners.sorted { $0.key < $1.key }.map { userId, learner in
            var row = ViewRow()
            row.add("kind", "user")
            row.add("userId", userId.string)
            if let info = learner.info {
                row.add("info", member: "info", ofEvent: info.value)
            } else {
                row.add("info", raw: nil)
            }
            row.add("learnLanguage", learner.combination?.value.learnLanguage)
            row.add("displayLanguage", learner.combination?.value.displayLanguage)
            row.add(
                "reviews",
                raw: JSONObjectWriter.array(reviews(of: userId.string).map(\.json)))
            row.add("vocabularies", raw: JSONObjectWriter.array(learner.vocabularyRows))
            return row
        }
    }
}

extension LearningView.Learner {
    fileprivate var vocabularyRows: [[UInt8]] {
        vocabularies.sorted { $0.key < $1.key }.flatMap { learn, byDisplay in
            byDisplay.sorted { $0.key < $1.key }.map { display, register in
                var writer = JSONObjectWriter()
                writer.add("learnLanguage", learn.string)
                writer.add("displayLanguage", display.string)
                writer.add("items", register.value.count)
                writer.add("cachedAt", register.stamp.time.description)
                writer.add("event", register.value.event.text)
                return writer.finished()
            }
        }
    }
}

extension StoredLesson {
    fileprivate var row: ViewRow {
        var row = ViewRow()
        row.add("kind", "lesson")
        row.add("courseId", courseId)
        row.add("lessonId", lessonId)
        row.add("size", material.size)
        row.add("files", objects: material.files)
        row.add("isExplicit", material.isExplicit)
        row.add("storedAt", material.storedAt.description)
        row.add("event", material.event.text)
        return row
    }
}

extension StoredReview {
    fileprivate var json: [UInt8] {
        var writer = JSONObjectWriter()
        writer.add("reviewId", reviewId)
        writer.add("learnLanguage", combination.learnLanguage)
        writer.add("displayLanguage", combination.displayLanguage)
        writer.add("courseId", raw: courseId.map(JSONObjectWriter.string) ?? Array("null".utf8))
        writer.add("order", order)
        writer.add("size", material.size)
        writer.add("files", objects: material.files)
        writer.add("isExplicit", material.isExplicit)
        writer.add("storedAt", material.storedAt.description)
        writer.add("event", material.event.text)
        return writer.finished()
    }
}

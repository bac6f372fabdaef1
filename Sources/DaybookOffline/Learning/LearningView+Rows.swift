// The rows of LearningView for tools: courses, then lessons, then users. Spec/model/views.md, VIEW-24.

import Daybook

extension LearningView {
    public static let columns = [
        "kind", "learnLanguage", "displayLanguage", "courses", "courseId", "lessonId", "size",
        "files", "isExplicit", "storedAt", "event", "userId", "info", "reviews", "vocabularies",
    ]

    public func rows() -> ViewRows {
        ViewRows(courseRows + storedLessons.map(\.row) + userRows)
    }

    private var courseRows: [ViewRow] {
        courses.sorted { $0.key < $1.key }.flatMap { learn, byDisplay in
            byDisplay.sorted { $0.key < $1.key }.map { display, register in
                var row = ViewRow()
                row.appendField("kind", "courses")
                row.appendField("learnLanguage", learn.string)
                row.appendField("displayLanguage", display.string)
                row.appendField("courses", objects: register.value)
                return row
            }
        }
    }

    private var userRows: [ViewRow] {
        learners.entities.sorted { $0.id < $1.id }.map { userId, learner in
            var row = ViewRow()
            row.appendField("kind", "user")
            row.appendField("userId", userId.string)
            if let info = learner.info {
                row.appendField("info", member: "info", ofEvent: info.value)
            } else {
                row.appendField("info", raw: nil)
            }
            row.appendField("learnLanguage", learner.combination?.value.learnLanguage)
            row.appendField("displayLanguage", learner.combination?.value.displayLanguage)
            row.appendField(
                "reviews",
                raw: JSONObjectWriter.array(reviews(of: userId.string).map(\.json)))
            row.appendField("vocabularies", raw: JSONObjectWriter.array(learner.vocabularyRows))
            return row
        }
    }
}

extension LearningView.Learner {
    fileprivate var vocabularyRows: [[UInt8]] {
        vocabularies.sorted { $0.key < $1.key }.flatMap { learn, byDisplay in
            byDisplay.sorted { $0.key < $1.key }.map { display, register in
                var writer = JSONObjectWriter()
                writer.appendMember("learnLanguage", learn.string)
                writer.appendMember("displayLanguage", display.string)
                writer.appendMember("items", register.value.count)
                writer.appendMember("cachedAt", register.lwwTimestamp.time.description)
                writer.appendMember("event", register.value.event.text)
                return writer.finished()
            }
        }
    }
}

extension StoredLesson {
    fileprivate var row: ViewRow {
        var row = ViewRow()
        row.appendField("kind", "lesson")
        row.appendField("courseId", courseId)
        row.appendField("lessonId", lessonId)
        row.appendField("size", material.size)
        row.appendField("files", objects: material.files)
        row.appendField("isExplicit", material.isExplicit)
        row.appendField("storedAt", material.storedAt.description)
        row.appendField("event", material.event.text)
        return row
    }
}

extension StoredReview {
    fileprivate var json: [UInt8] {
        var writer = JSONObjectWriter()
        writer.appendMember("reviewId", reviewId)
        writer.appendMember("learnLanguage", combination.learnLanguage)
        writer.appendMember("displayLanguage", combination.displayLanguage)
        writer.appendMember(
            "courseId", raw: courseId.map(JSONObjectWriter.string) ?? Array("null".utf8))
        writer.appendMember("order", order)
        writer.appendMember("size", material.size)
        writer.appendMember("files", objects: material.files)
        writer.appendMember("isExplicit", material.isExplicit)
        writer.appendMember("storedAt", material.storedAt.description)
        writer.appendMember("event", material.event.text)
        return writer.finished()
    }
}

// The state of LearningView as bytes, and which events it still needs. Spec/model/views.md, VIEW-10;
// Spec/format/compaction.md, CMP-3.

import Daybook
import Foundation
import HashTreeCollections

extension LearningView {
    public func encodedState() -> [UInt8]? {
        var writer = StateWriter()
        writer.add(count: ignored)
        writer.add(courses) { writer, courses in
            writer.add(count: courses.count)
            for course in courses { course.write(to: &writer) }
        }
        var entries = writer.entries(count: lessons.count)
        for (courseId, lessons) in lessons {
            writer.begin(courseId, of: &entries)
            writer.add(lessons) { writer, held in
                writer.add(held != nil)
                held?.write(to: &writer)
            }
        }
        writer.end(entries)
        entries = writer.entries(count: learners.count)
        for (userId, learner) in learners {
            writer.begin(userId, of: &entries)
            learner.write(to: &writer)
        }
        writer.end(entries)
        return writer.bytes
    }

    public init(encodedState: [UInt8]) throws {
        var reader = StateReader(encodedState)
        self.init()
        ignored = try reader.tally()
        courses = try reader.byCombination { (reader) throws(EventError) in
            var courses: [ListedCourse] = []
            for _ in 0..<(try reader.count()) { courses.append(try ListedCourse(&reader)) }
            return courses
        }
        var view = self
        try reader.entries { (reader, courseId) throws(EventError) in
            view.lessons[courseId] = try reader.registers { (reader) throws(EventError) in
                let held = try reader.bool() ? try Held(&reader) : nil
                view.count(held, by: 1)
                return held
            }
        }
        try reader.entries { (reader, userId) throws(EventError) in
            let learner = try Learner(&reader)
            for review in learner.reviews.values { view.count(review.value?.held, by: 1) }
            view.learners[userId] = learner
        }
        try reader.finish()
        self = view
    }
}

extension LearningView.Learner {
    fileprivate func write(to writer: inout StateWriter) {
        writer.add(register: info) { $0.add($1) }
        writer.add(register: combination) { $0.add($1) }
        writer.add(vocabularies) { writer, vocabulary in
            writer.add(vocabulary.event)
            writer.add(count: vocabulary.count)
        }
        writer.add(!reviews.isEmpty)
        if !reviews.isEmpty {
            writer.add(reviews) { writer, review in
                writer.add(review != nil)
                review?.write(to: &writer)
            }
        }
    }

    fileprivate init(_ reader: inout StateReader) throws(EventError) {
        self.init()
        info = try reader.register { (reader) throws(EventError) in try reader.uuid() }
        combination = try reader.register { (reader) throws(EventError) in
            try reader.combination()
        }
        vocabularies = try reader.byCombination { (reader) throws(EventError) in
            LearningView.Vocabulary(event: try reader.uuid(), count: try reader.nonNegative())
        }
        if try reader.bool() {
            reviews = try reader.registers { (reader) throws(EventError) in
                try reader.bool() ? try LearningView.Review(&reader) : nil
            }
        }
        guard info != nil || combination != nil || !vocabularies.isEmpty || !reviews.isEmpty else {
            throw reader.fault("nothing is known of a learner")
        }
    }
}

extension LearningView.Review {
    fileprivate func write(to writer: inout StateWriter) {
        writer.add(combination)
        writer.add(optional: courseId)
        writer.add(count: order)
        held.write(to: &writer)
    }

    fileprivate init(_ reader: inout StateReader) throws(EventError) {
        self.init(
            combination: try reader.combination(), courseId: try reader.optionalString(),
            order: try reader.nonNegative(), held: try LearningView.Held(&reader))
    }
}

extension LearningView.Held {
    fileprivate func write(to writer: inout StateWriter) {
        writer.add(event)
        writer.add(count: size)
        writer.add(count: files.count)
        for file in files {
            writer.add(file.url)
            writer.add(file.file)
            writer.add(count: file.size)
        }
        writer.add(isExplicit)
    }

    fileprivate init(_ reader: inout StateReader) throws(EventError) {
        let event = try reader.uuid()
        let size = try reader.nonNegative()
        var files: [LearningFile] = []
        for _ in 0..<(try reader.count()) {
            files.append(
                LearningFile(
                    url: try reader.string(), file: try reader.file(),
                    size: try reader.nonNegative()))
        }
        self.init(event: event, size: size, files: files, isExplicit: try reader.bool())
    }
}

extension ListedCourse {
    fileprivate func write(to writer: inout StateWriter) {
        writer.add(id)
        writer.add(optional: title)
        writer.add(count: lessons.count)
        for lesson in lessons {
            writer.add(lesson.id)
            writer.add(optional: lesson.title)
        }
    }

    fileprivate init(_ reader: inout StateReader) throws(EventError) {
        self.init(id: try reader.string(), title: try reader.optionalString(), lessons: [])
        for _ in 0..<(try reader.count()) {
            lessons.append(
                ListedLesson(id: try reader.string(), title: try reader.optionalString()))
        }
    }
}

extension StateWriter {
    fileprivate mutating func add(_ combination: LanguageCombination) {
        add(combination.learnLanguage)
        add(combination.displayLanguage)
    }

    fileprivate mutating func add<Value>(
        _ registers: TreeDictionary<EntityID, Register<Value>>,
        _ write: (inout StateWriter, Value) -> Void
    ) {
        var entries = self.entries(count: registers.count)
        for (key, register) in registers {
            begin(key, of: &entries)
            write(&self, register.value)
            add(register.stamp)
        }
        end(entries)
    }

    fileprivate mutating func add<Value>(
        _ all: LearningView.ByCombination<Register<Value>>,
        _ write: (inout StateWriter, Value) -> Void
    ) {
        var entries = self.entries(count: all.count)
        for (language, registers) in all {
            begin(language, of: &entries)
            add(registers, write)
        }
        end(entries)
    }
}

extension StateReader {
    fileprivate mutating func combination() throws(EventError) -> LanguageCombination {
        LanguageCombination(learn: try string(), display: try string())
    }

    /// Reads registers by key; there is at least one.
    fileprivate mutating func registers<Value>(
        _ read: (inout StateReader) throws(EventError) -> Value
    ) throws(EventError) -> TreeDictionary<EntityID, Register<Value>> {
        var registers: TreeDictionary<EntityID, Register<Value>> = [:]
        try entries { (reader, key) throws(EventError) in
            let value = try read(&reader)
            registers[key] = Register(value, try reader.stamp())
        }
        guard !registers.isEmpty else { throw fault("there is nothing where something was") }
        return registers
    }

    fileprivate mutating func byCombination<Value>(
        _ read: (inout StateReader) throws(EventError) -> Value
    ) throws(EventError) -> LearningView.ByCombination<Register<Value>> {
        var all: LearningView.ByCombination<Register<Value>> = [:]
        try entries { (reader, language) throws(EventError) in
            all[language] = try reader.registers(read)
        }
        return all
    }
}

extension LearningView: CompactableView {
    /// An event is needed while it holds its register.
    public func retention(of event: Event) -> Retention {
        guard Self.folds(event.type) else { return .unconcerned }
        func held(_ stamp: Stamp?) -> Retention { .of(event, heldBy: [stamp]) }
        do {
            switch event.type {
            case UserStored.type:
                return held(learner(try event.payload(as: UserStored.self).userId)?.info?.stamp)
            case CombinationSelected.type:
                let userId = try event.payload(as: CombinationSelected.self).userId
                return held(learner(userId)?.combination?.stamp)
            case CoursesListed.type:
                return held(coursesStamp(try event.payload(as: CoursesListed.self).combination))
            case LessonStored.type:
                let lesson = try event.payload(as: LessonStored.self)
                return held(stamp(ofLesson: lesson.lessonId, course: lesson.courseId))
            case LessonRemoved.type:
                let lesson = try event.payload(as: LessonRemoved.self)
                return held(stamp(ofLesson: lesson.lessonId, course: lesson.courseId))
            case ReviewStored.type:
                let review = try event.payload(as: ReviewStored.self)
                return held(stamp(ofReview: review.reviewId, of: review.userId))
            case ReviewRemoved.type:
                let review = try event.payload(as: ReviewRemoved.self)
                return held(stamp(ofReview: review.reviewId, of: review.userId))
            case VocabularyCached.type:
                let cached = try event.payload(as: VocabularyCached.self)
                return held(vocabularyStamp(of: cached.userId, cached.combination))
            default: return .unconcerned
            }
        } catch { return .needed(.notUnderstood) }
    }
}

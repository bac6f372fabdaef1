// The encoded state of LearningView, and the events that it still needs. Spec/model/views.md, VIEW-10;
// Spec/format/compaction.md, CMP-3.

import Daybook
import Foundation
import HashTreeCollections

extension LearningView {
    public func encodedState() -> [UInt8]? {
        var writer = StateWriter()
        writer.write(count: ignored)
        writer.write(courses) { writer, courses in
            writer.write(count: courses.count)
            for course in courses { course.write(to: &writer) }
        }
        var entries = writer.entries(count: lessons.count)
        for (courseId, lessons) in lessons {
            writer.begin(courseId, of: &entries)
            writer.write(lessons) { writer, material in
                writer.write(material != nil)
                material?.write(to: &writer)
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
                let material = try reader.bool() ? try Material(&reader) : nil
                view.countFiles(of: material, by: 1)
                return material
            }
        }
        try reader.entries { (reader, userId) throws(EventError) in
            let learner = try Learner(&reader)
            for review in learner.reviews.values {
                view.countFiles(of: review.value?.material, by: 1)
            }
            view.learners[userId] = learner
        }
        try reader.finish()
        self = view
    }
}

extension LearningView.Learner {
    fileprivate func write(to writer: inout StateWriter) {
        writer.write(register: info) { $0.write($1) }
        writer.write(register: combination) { $0.write($1) }
        writer.write(vocabularies) { writer, vocabulary in
            writer.write(vocabulary.event)
            writer.write(count: vocabulary.count)
        }
        writer.write(!reviews.isEmpty)
        if !reviews.isEmpty {
            writer.write(reviews) { writer, review in
                writer.write(review != nil)
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
            throw reader.fault("the entry of a learner is empty")
        }
    }
}

extension LearningView.Review {
    fileprivate func write(to writer: inout StateWriter) {
        writer.write(combination)
        writer.write(optional: courseId)
        writer.write(count: order)
        material.write(to: &writer)
    }

    fileprivate init(_ reader: inout StateReader) throws(EventError) {
        self.init(
            combination: try reader.combination(), courseId: try reader.optionalString(),
            order: try reader.nonNegative(), material: try LearningView.Material(&reader))
    }
}

extension LearningView.Material {
    fileprivate func write(to writer: inout StateWriter) {
        writer.write(event)
        writer.write(count: size)
        writer.write(count: files.count)
        for file in files {
            writer.write(file.url)
            writer.write(file.file)
            writer.write(count: file.size)
        }
        writer.write(isExplicit)
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
        writer.write(id)
        writer.write(optional: title)
        writer.write(count: lessons.count)
        for lesson in lessons {
            writer.write(lesson.id)
            writer.write(optional: lesson.title)
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
    fileprivate mutating func write(_ combination: LanguageCombination) {
        write(combination.learnLanguage)
        write(combination.displayLanguage)
    }

    fileprivate mutating func write<Value>(
        _ registers: TreeDictionary<EntityID, Register<Value>>,
        _ writeValue: (inout StateWriter, Value) -> Void
    ) {
        var entries = self.entries(count: registers.count)
        for (key, register) in registers {
            begin(key, of: &entries)
            writeValue(&self, register.value)
            write(register.lwwTimestamp)
        }
        end(entries)
    }

    fileprivate mutating func write<Value>(
        _ values: LearningView.ByCombination<Register<Value>>,
        _ writeValue: (inout StateWriter, Value) -> Void
    ) {
        var entries = self.entries(count: values.count)
        for (language, registers) in values {
            begin(language, of: &entries)
            write(registers, writeValue)
        }
        end(entries)
    }
}

extension StateReader {
    fileprivate mutating func combination() throws(EventError) -> LanguageCombination {
        LanguageCombination(learn: try string(), display: try string())
    }

    /// Reads registers by key.
    ///
    /// - Throws: `EventError` if there is none.
    fileprivate mutating func registers<Value>(
        _ read: (inout StateReader) throws(EventError) -> Value
    ) throws(EventError) -> TreeDictionary<EntityID, Register<Value>> {
        var registers: TreeDictionary<EntityID, Register<Value>> = [:]
        try entries { (reader, key) throws(EventError) in
            let value = try read(&reader)
            registers[key] = Register(value, try reader.lwwTimestamp())
        }
        guard !registers.isEmpty else { throw fault("a map of registers is empty") }
        return registers
    }

    fileprivate mutating func byCombination<Value>(
        _ read: (inout StateReader) throws(EventError) -> Value
    ) throws(EventError) -> LearningView.ByCombination<Register<Value>> {
        var values: LearningView.ByCombination<Register<Value>> = [:]
        try entries { (reader, language) throws(EventError) in
            values[language] = try reader.registers(read)
        }
        return values
    }
}

extension LearningView: CompactableView {
    /// An event is needed while it is the winner of its register.
    public func retention(of event: Event) -> Retention {
        guard Self.folds(event.type) else { return .unconcerned }
        func retention(winner lwwTimestamp: LWWTimestamp?) -> Retention {
            .of(event, heldBy: [lwwTimestamp])
        }
        do {
            switch event.type {
            case UserStored.type:
                return retention(
                    winner:
                        learner(try event.payload(as: UserStored.self).userId)?.info?.lwwTimestamp)
            case CombinationSelected.type:
                let userId = try event.payload(as: CombinationSelected.self).userId
                return retention(winner: learner(userId)?.combination?.lwwTimestamp)
            case CoursesListed.type:
                return retention(
                    winner: coursesTimestamp(try event.payload(as: CoursesListed.self).combination))
            case LessonStored.type:
                let lesson = try event.payload(as: LessonStored.self)
                return retention(
                    winner: lwwTimestamp(ofLesson: lesson.lessonId, course: lesson.courseId))
            case LessonRemoved.type:
                let lesson = try event.payload(as: LessonRemoved.self)
                return retention(
                    winner: lwwTimestamp(ofLesson: lesson.lessonId, course: lesson.courseId))
            case ReviewStored.type:
                let review = try event.payload(as: ReviewStored.self)
                return retention(winner: lwwTimestamp(ofReview: review.reviewId, of: review.userId))
            case ReviewRemoved.type:
                let review = try event.payload(as: ReviewRemoved.self)
                return retention(winner: lwwTimestamp(ofReview: review.reviewId, of: review.userId))
            case VocabularyCached.type:
                let cached = try event.payload(as: VocabularyCached.self)
                return retention(winner: vocabularyTimestamp(of: cached.userId, cached.combination))
            default: return .unconcerned
            }
        } catch { return .needed(.notUnderstood) }
    }
}

// The stored form of the values of LearningView. Spec/model/views.md, VIEW-10.

import Daybook

extension ListedCourse: StateObject {
    public mutating func visitState(_ state: inout some StateVisitor) throws(EventError) {
        try state.visit(&id, &title, &lessons)
    }
}

extension ListedLesson: StateObject {
    public mutating func visitState(_ state: inout some StateVisitor) throws(EventError) {
        try state.visit(&id, &title)
    }
}

extension LearningFile: StateObject {
    public mutating func visitState(_ state: inout some StateVisitor) throws(EventError) {
        try state.visit(&url, &file, &size)
    }
}

extension LanguageCombination: StateObject {
    public mutating func visitState(_ state: inout some StateVisitor) throws(EventError) {
        try state.visit(&learnLanguage, &displayLanguage)
    }
}

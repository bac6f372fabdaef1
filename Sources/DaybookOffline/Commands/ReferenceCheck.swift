// Checks that the store contains the ids that a command refers to. Commands check before they record;
// imported and received events are not checked. Spec/model/events.md, EVT-17.

import Daybook

/// The references that commands check before they record. Without a list in the store, any id is
/// accepted.
public struct ReferenceCheck: OptionSet, Hashable, Sendable {
    public let rawValue: Int

    public init(rawValue: Int) { self.rawValue = rawValue }

    /// The city of a save, a note or a download. It is refused if the store has a list of cities
    /// (`content.list(_:)`) and neither the list nor anything else in the store names the city.
    public static let cities = ReferenceCheck(rawValue: 1)
    /// The course of an activation or a completion, and its lesson. It is refused if the store has the
    /// courses of the learner's language combination, and neither they nor anything else in the store
    /// name it.
    public static let courses = ReferenceCheck(rawValue: 2)
}

extension ReferenceCheck {
    /// Throws if the check of cities is on and the city is unknown. O(cities of the list).
    func requireCity(
        _ cityId: String, _ transaction: EventStore.Transaction
    ) throws(EventError) {
        // An empty list means that no list has arrived.
        guard contains(.cities), let list = transaction.view(ContentView.self).cityList,
            !list.isEmpty
        else { return }
        let (id, cities) = (EntityID(cityId), transaction.view(CitiesView.self))
        guard
            list.contains(where: { EntityID($0.code) == id }) || cities.offline(cityId) != nil
                || !cities.savers(of: cityId).isEmpty
                || !transaction.view(DownloadsView.self).jobs(of: cityId).isEmpty
                || !transaction.view(NotesView.self).notes(in: cityId).isEmpty
                || transaction.view(ContentView.self).cityCodes.contains(where: {
                    EntityID($0) == id
                })
                || transaction.view(PagesView.self).cityCodes.contains(where: { EntityID($0) == id }
                )
        else {
            throw Self.unknown("city", cityId, "the store's list of cities", "content.list(_:)")
        }
    }

    /// Throws if the check of courses is on and the course or the lesson is unknown.
    ///
    /// - Parameter lessonId: a lesson of the course; nil for the course alone.
    /// - Complexity: O(courses + lessons of the learner's combination).
    func requireCourse(
        _ courseId: String, lesson lessonId: String? = nil, of userId: String,
        _ transaction: EventStore.Transaction
    ) throws(EventError) {
        let learning = transaction.view(LearningView.self)
        guard contains(.courses), let combination = learning.combination(of: userId),
            let courses = learning.courses(of: combination), !courses.isEmpty
        else { return }
        let progress = transaction.view(ProgressView.self)
        let course = courses.first { EntityID($0.id) == EntityID(courseId) }
        guard
            course != nil || learning.hasLessons(of: courseId)
                || progress.courses(of: userId).contains(where: {
                    EntityID($0.courseId) == EntityID(courseId)
                })
        else {
            throw Self.unknown(
                "course", courseId, "the store's courses of what \(userId) learns",
                "learning.storeCourses(_:of:)")
        }
        guard let lessonId, let course else { return }
        guard
            course.lessons.contains(where: { EntityID($0.id) == EntityID(lessonId) })
                || learning.lesson(lessonId, course: courseId) != nil
                || progress.lesson(lessonId, course: courseId, of: userId) != nil
        else {
            throw Self.unknown(
                "lesson", lessonId, "the course \(courseId)", "learning.storeCourses(_:of:)")
        }
    }

    private static func unknown(
        _ what: String, _ id: String, _ list: String, _ call: String
    ) -> EventError {
        EventError(
            .unknownReference,
            "the \(what) \(id) is not in \(list); store a list that has it with \(call), or open "
                + "the store with references: []")
    }
}

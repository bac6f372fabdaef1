// All event types and views of the model in one list. Spec/model/events.md.

import Daybook

/// The built-in event types and views.
public enum OfflineModel {
    /// Prefix of all built-in types.
    static let prefix = "daybook."

    /// The event types with their rules. A type with an action is shipped to the server; the types that are not
    /// listed here stay on the device.
    public static let catalogue = EventCatalogue(
        [
            .of(CitySaved.self, action: "SAVE_CITY").undoable {
                (saved: CitySaved, before: CitiesView) -> CityUnsaved? in
                guard !before.isSaved(saved.cityId, by: saved.userId) else { return nil }
                return CityUnsaved(userId: saved.userId, cityId: saved.cityId)
            },
            .of(CityUnsaved.self, action: "UNSAVE_CITY").undoable {
                (unsaved: CityUnsaved, before: CitiesView) -> CitySaved? in
                guard before.isSaved(unsaved.cityId, by: unsaved.userId) else { return nil }
                return CitySaved(userId: unsaved.userId, cityId: unsaved.cityId)
            },
            .of(NoteAdded.self, action: "ADD_NOTE", beginsEntity: true).refusingDeletedNotes
                .notUndoable(because: "a note can only be deleted, for ever"),
            .of(NoteUpdated.self, action: "UPDATE_NOTE").refusingDeletedNotes.undoable {
                (update: NoteUpdated, before: NotesView) in
                before[update.noteId].map {
                    NoteUpdated(
                        noteId: update.noteId, content: $0.content, updatedBy: update.updatedBy)
                }
            },
            .of(NoteDeleted.self, action: "DELETE_NOTE", endsEntity: true)
                .notUndoable(because: "the deletion of a note is final"),
            .of(PreferencesUpdated.self, action: "UPDATE_PREFERENCES"),
            .of(CourseActivated.self, action: "ACTIVATE_COURSE").undoable {
                (course: CourseActivated, before: ProgressView) in
                before.activeCourse(of: course.userId).map {
                    CourseActivated(userId: course.userId, courseId: $0)
                }
            },
            .of(LessonCompleted.self, action: "COMPLETE_LESSON")
                .notUndoable(because: "a completed lesson stays completed"),
            .of(ReviewCompleted.self, action: "COMPLETE_REVIEW")
                .notUndoable(because: "a completed review session stays completed"),
        ] + keptTypes
    ).reserving(prefix)

    /// The views that are folded from these events.
    public static let views: [any ListableView.Type] = [
        CitiesView.self, NotesView.self, PreferencesView.self, ProgressView.self, PagesView.self,
        ContentView.self, DownloadsView.self, SettingsView.self, LearningView.self,
        AssetsView.self, AlbumsView.self, DeviceMediaView.self, ImagesView.self,
    ]
}

extension EventPayload {
    /// Checks that an identifier is not empty before it is recorded.
    static func require(_ value: String, _ name: String) throws(EventError) {
        guard !value.isEmpty else { throw EventError(.refused, "the \(name) is empty") }
    }
}

// All event types and views of the model in one list. Spec/model/events.md.

import Daybook

/// The built-in event types and views.
public enum OfflineModel {
    /// Prefix of all built-in types.
    static let prefix = "daybook."

    /// The event types with their rules. A type with an action is shipped to the server.
    public static let catalogue = EventCatalogue([
        .of(CitySaved.self, action: "SAVE_CITY"),
        .of(CityUnsaved.self, action: "UNSAVE_CITY"),
        .of(NoteAdded.self, action: "ADD_NOTE", beginsEntity: true).refusingDeletedNotes,
        .of(NoteUpdated.self, action: "UPDATE_NOTE").refusingDeletedNotes,
        .of(NoteDeleted.self, action: "DELETE_NOTE", endsEntity: true),
        .of(PreferencesUpdated.self, action: "UPDATE_PREFERENCES"),
        .of(CourseActivated.self, action: "ACTIVATE_COURSE"),
        .of(LessonCompleted.self, action: "COMPLETE_LESSON"),
        .of(ReviewCompleted.self, action: "COMPLETE_REVIEW"),
        // Kept on the device.
        .of(CityCached.self), .of(CityRemoved.self), .of(CityAccessed.self),
        .of(CitiesListed.self), .of(LanguagesListed.self), .of(PageStored.self),
        .of(PageRemoved.self), .of(ResourceStored.self), .of(ResourceRemoved.self),
        .of(ContentUpdated.self), .of(ContentUsed.self), .of(ContentRemoved.self),
        .of(DownloadQueued.self), .of(DownloadStarted.self), .of(DownloadPaused.self),
        .of(DownloadCompleted.self), .of(DownloadFailed.self), .of(DownloadCancelled.self),
        .of(DownloadRemoved.self),
        .of(SettingPut.self), .of(SettingDeleted.self),
        .of(AssetStored.self), .of(AssetRemoved.self), .of(AlbumStored.self),
        .of(AlbumRemoved.self), .of(AlbumLinked.self), .of(AlbumUnlinked.self),
        .of(BackupAlbumStored.self), .of(BackupAlbumRemoved.self), .of(DuplicateStored.self),
        .of(DuplicateRemoved.self), .of(ETagStored.self), .of(ETagRemoved.self),
        .of(DeviceAssetStored.self), .of(DeviceAssetRemoved.self),
        .of(ImageCached.self), .of(ImageRemoved.self), .of(ImageAccessed.self),
        .of(ImagesCleared.self),
        .of(UserStored.self), .of(CombinationSelected.self), .of(CoursesListed.self),
        .of(LessonStored.self), .of(LessonRemoved.self), .of(ReviewStored.self),
        .of(ReviewRemoved.self), .of(VocabularyCached.self),
    ]).reserving(prefix)

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

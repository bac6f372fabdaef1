// The file stores of a log whose images are stored in the app's cache folder, not in the log's folder.
// Spec/model/images.md, IMG-19.

import Daybook

extension FileStore {
    /// Returns the file store of a log's cached images in a cache folder.
    static func images(of events: EventStore, in cache: String) -> FileStore {
        FileStore(events, in: CacheFolder.images.path(in: cache, of: events)) { file in
            events.view(ImagesView.self).refers(to: file)
        }
    }

    /// Returns the file store in the folder of a log whose images have a store of their own. A file of an
    /// image remains here only until its first read moves it there.
    static func inLogFolder(
        _ events: EventStore, excludingImagesIn images: FileStore
    ) -> FileStore {
        FileStore(events) { file in
            events.projections.contains { view in
                guard let view = view as? any FileReferring, view.refers(to: file) else {
                    return false
                }
                return !(view is ImagesView) || !images.contains(file)
            }
        }
    }
}

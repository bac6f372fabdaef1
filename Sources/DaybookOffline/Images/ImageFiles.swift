// Where the bytes of images lie if the app names a cache folder: there, and not beside the log.
// Spec/model/images.md, IMG-19.

import Daybook

extension FileStore {
    /// The bytes of a log's cached images, in a cache folder.
    static func images(of events: EventStore, in cache: String) -> FileStore {
        FileStore(events, in: CacheFolder.images.path(in: cache, of: events)) { file in
            events.view(ImagesView.self).refers(to: file)
        }
    }

    /// The files beside a log whose images lie in a store of their own. An image keeps its file here
    /// only as long as it has none there: until it is looked at for the first time.
    static func besideLog(_ events: EventStore, excludingImagesIn images: FileStore)
        -> FileStore
    {
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

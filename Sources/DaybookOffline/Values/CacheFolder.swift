// The folders of a log in a cache folder that the app names and the system may delete. They contain bytes
// that can be fetched again. Several logs can share a cache folder. Spec/model/images.md, IMG-19;
// Spec/model/downloads.md, DL-14.

import Daybook
import Foundation

/// A folder of a log in a cache folder.
enum CacheFolder: String, CaseIterable, Sendable {
    /// The bytes of cached images.
    case images
    /// Partial downloads.
    case downloads

    /// The folder for a log.
    func url(in cache: URL, of events: EventStore) -> URL {
        URL(filePath: path(in: cache.path, of: events))
    }

    /// The folder's path for a log.
    func path(in cache: String, of events: EventStore) -> String {
        "\(cache)/daybook-\(rawValue)/\(events.logID.text)"
    }
}

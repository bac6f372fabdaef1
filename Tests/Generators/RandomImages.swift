// Events of few cached images, and of the assets and albums that end them, so that they meet. Feeds
// EventHistory; part of RandomEvents.

import DaybookOffline
import DaybookTestKit

extension Choices {
    /// The data of any event that the image cache has to do with.
    package mutating func imagePayload() throws -> any EventPayload {
        // Seldom: it ends very much.
        if bool(oneIn: 36) { return try payload(ImagesCleared.self) }
        return try payload(ofAny: [
            ImageCached.self, ImageCached.self, ImageCached.self, ImageCached.self,
            ImageAccessed.self, ImageAccessed.self, ImageRemoved.self, AssetRemoved.self,
            AlbumRemoved.self, AlbumLinked.self, AlbumUnlinked.self, AlbumStored.self,
        ])
    }
}

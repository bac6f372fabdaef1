// Events of few cached images, and of the assets and albums whose events remove images. Part of RandomEvents.

import DaybookOffline
import DaybookTestKit

extension Choices {
    /// Draws the data of any event that affects the image cache.
    package mutating func imagePayload() throws -> any EventPayload {
        // Rare, because it removes many images.
        if bool(oneIn: 36) { return try payload(ImagesCleared.self) }
        return try payload(ofAny: [
            ImageCached.self, ImageCached.self, ImageCached.self, ImageCached.self,
            ImageAccessed.self, ImageAccessed.self, ImageRemoved.self, AssetRemoved.self,
            AlbumRemoved.self, AlbumLinked.self, AlbumUnlinked.self, AlbumStored.self,
        ])
    }
}

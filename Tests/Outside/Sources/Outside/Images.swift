// The code of the article "Caching images".

import DaybookOffline
import Foundation

/// A source of images.
package protocol ImageServer: Sendable {
    /// The thumbnail of an asset.
    func thumbnail(of assetId: String) async throws -> [UInt8]
}

package enum Images {
    package static func fetch(
        _ store: OfflineStore, _ server: some ImageServer
    ) async throws -> [UInt8] {
        // Images-1 begins
        let bytes = try await store.images.image(.thumbnail, "asset-1") {
            try await server.thumbnail(of: "asset-1")
        }
        // Images-1 ends
        return bytes
    }

    package static func listCached(_ store: OfflineStore) async {
        // Images-2 begins
        if let cover = await store.images.image(.albumThumbnail, "album-1") {
            print(cover.count)
        }
        // Images-2 ends
    }

    package static func store(_ store: OfflineStore, _ preview: [UInt8]) async throws {
        // Images-3 begins
        try await store.images.store(preview, .preview, "asset-1")
        // Images-3 ends
    }

    package static func limit(_ store: OfflineStore) async throws {
        // Images-4 begins
        var limits = ImageCacheLimits()  // 10,000 thumbnails, 350 previews, 200 for albums
        limits.thumbnails = 5_000
        limits.memoryBytes = 16 * 1_048_576
        try await store.images.setLimits(limits)
        // Images-4 ends
    }

    package static func clear(_ store: OfflineStore) async throws -> (ImageCacheSize, Int) {
        // Images-5 begins
        let size = store.images.size(of: .thumbnail).current
        print(size.images, size.bytes)
        let gone = try await store.images.clearAll()
        print(gone.bytes)
        // Images-5 ends
        return (size, gone.bytes)
    }
}

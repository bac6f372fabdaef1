// How much the image cache may hold: what the user has set, or what the app says. Spec/model/images.md,
// IMG-6.

import Daybook

/// The limits of the image cache.
public struct ImageCacheLimits: Hashable, Sendable {
    /// Most thumbnails of assets on the disk (`thumbnailCacheSize`); at most 16,384 count. With 0
    /// none is kept.
    public var thumbnails = 10_000
    /// Most previews on the disk (`imageCacheSize`); at most 2,048 count.
    public var previews = 350
    /// Most thumbnails of albums on the disk (`albumThumbnailCacheSize`); at most 2,048 count.
    public var albumThumbnails = 200
    /// Most bytes of images in memory.
    public var memoryBytes = 32 * 1_048_576
    /// Most images in memory.
    public var memoryImages = 1_000

    /// The defaults.
    public init() {}

    /// What the user has set, and the defaults for memory.
    public init(_ settings: SettingsView) {
        thumbnails = settings[.thumbnailCacheSize]
        previews = settings[.imageCacheSize]
        albumThumbnails = settings[.albumThumbnailCacheSize]
    }

    /// Checks that no limit is negative.
    ///
    /// - Throws: `EventError` (`refused`), naming the limit.
    // Not inlined, nor with a typed error: Swift 6.3 crashes where it optimises the caller.
    @inline(never)
    func check() throws {
        let limits = [
            ("thumbnails", thumbnails), ("previews", previews),
            ("albumThumbnails", albumThumbnails), ("memoryBytes", memoryBytes),
            ("memoryImages", memoryImages),
        ]
        for (name, limit) in limits where limit < 0 {
            throw EventError(
                .refused, "the image cache's limit \(name) is \(limit). Give it 0 or more")
        }
    }

    /// The limit of a kind, as it counts.
    public subscript(kind: ImageKind) -> Int {
        let limit =
            switch kind {
            case .thumbnail: thumbnails
            case .preview: previews
            case .albumThumbnail: albumThumbnails
            }
        return min(max(0, limit), kind.limitMax)
    }
}

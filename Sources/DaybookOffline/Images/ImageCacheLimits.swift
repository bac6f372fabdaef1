// The limits of the image cache, from the user's settings or from the app. Spec/model/images.md, IMG-6.

import Daybook

/// The limits of the image cache.
public struct ImageCacheLimits: Hashable, Sendable {
    /// The greatest number of assets' thumbnails on the disk (`thumbnailCacheSize`). A value above 16,384
    /// counts as 16,384. With 0 none is stored.
    public var thumbnails = 10_000
    /// The greatest number of previews on the disk (`imageCacheSize`). A value above 2,048 counts as 2,048.
    public var previews = 350
    /// The greatest number of albums' thumbnails on the disk (`albumThumbnailCacheSize`). A value above
    /// 2,048 counts as 2,048.
    public var albumThumbnails = 200
    /// The greatest number of bytes of images in memory.
    public var memoryBytes = 32 * 1_048_576
    /// The greatest number of images in memory.
    public var memoryImages = 1_000

    /// The defaults.
    public init() {}

    /// The limits of the user's settings, and the defaults for memory. A negative setting counts as none: it must
    /// not remove the images.
    public init(_ settings: SettingsView) {
        func limit(_ setting: UserSetting<Int>) -> Int {
            let value = settings[setting]
            return value < 0 ? setting.defaultValue : value
        }
        thumbnails = limit(.thumbnailCacheSize)
        previews = limit(.imageCacheSize)
        albumThumbnails = limit(.albumThumbnailCacheSize)
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
                .refused, "the image cache's limit \(name) is \(limit), but must be 0 or more")
        }
    }

    /// The effective limit of a kind.
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

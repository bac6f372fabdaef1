// The memory layer of the image cache: an LRU cache of contents by file. Only the view knows whether a
// content belongs to an image. Part of ImageCache. Spec/model/images.md, IMG-8.

import Daybook

/// Contents of images in memory.
struct ImageMemory: Sendable {
    /// The greatest number of bytes of all contents.
    private(set) var bytesMax: Int
    /// The greatest number of contents.
    private(set) var contentsMax: Int
    private(set) var bytes = 0
    private var contents: [FileID: [UInt8]] = [:]
    private var order = LRUOrder<FileID>()

    init(_ limits: ImageCacheLimits) {
        bytesMax = max(0, limits.memoryBytes)
        contentsMax = max(0, limits.memoryImages)
    }

    /// The number of contents.
    var count: Int { contents.count }

    /// Returns a content and moves it to the end of the LRU order. O(log n).
    mutating func content(of file: FileID) -> [UInt8]? {
        guard let content = contents[file] else { return nil }
        order.use(file)
        return content
    }

    /// Inserts a content and evicts others if necessary. A content that exceeds `bytesMax` by itself is not
    /// inserted. O(log n) for each content inserted or evicted.
    mutating func insert(_ content: [UInt8], of file: FileID) {
        guard content.count <= bytesMax else { return }
        remove(file)
        contents[file] = content
        bytes += content.count
        order.use(file)
        trim()
    }

    mutating func remove(_ file: FileID) {
        guard let content = contents.removeValue(forKey: file) else { return }
        bytes -= content.count
        order.remove(file)
    }

    /// Removes the contents for which `isNeeded` is false. O(contents).
    mutating func retain(where isNeeded: (FileID) -> Bool) {
        for file in Array(contents.keys) where !isNeeded(file) { remove(file) }
    }

    /// Sets the limits and evicts the contents above them.
    mutating func setLimits(_ limits: ImageCacheLimits) {
        bytesMax = max(0, limits.memoryBytes)
        contentsMax = max(0, limits.memoryImages)
        trim()
    }

    private mutating func trim() {
        while bytes > bytesMax || contents.count > contentsMax, let file = order.leastRecent {
            remove(file)
        }
    }
}

// The memory layer of the image cache: contents by their files, the least recently used go. Whether
// a content is that of an image says the view alone. Part of ImageCache. Spec/model/images.md, IMG-8.

import Daybook

/// Contents of images in memory.
struct ImageMemory: Sendable {
    /// Most bytes of all contents.
    private(set) var bytesMax: Int
    /// Most contents.
    private(set) var contentsMax: Int
    private(set) var bytes = 0
    private var contents: [FileID: [UInt8]] = [:]
    private var order = UseOrder<FileID>()

    init(_ limits: ImageCacheLimits) {
        bytesMax = max(0, limits.memoryBytes)
        contentsMax = max(0, limits.memoryImages)
    }

    /// How many contents there are.
    var count: Int { contents.count }

    /// A content, which is a use of it. O(log n).
    mutating func content(of file: FileID) -> [UInt8]? {
        guard let content = contents[file] else { return nil }
        order.use(file)
        return content
    }

    /// Takes in a content; others go as far as is necessary. One that is too big by itself is not
    /// taken in. O(log n) for each that comes or goes.
    mutating func add(_ content: [UInt8], of file: FileID) {
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

    /// Keeps what somebody needs. O(contents).
    mutating func keep(_ isNeeded: (FileID) -> Bool) {
        for file in Array(contents.keys) where !isNeeded(file) { remove(file) }
    }

    /// Changes the limits; what is too much goes.
    mutating func change(to limits: ImageCacheLimits) {
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

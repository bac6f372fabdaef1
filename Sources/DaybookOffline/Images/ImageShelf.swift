// The cached images of one kind, in order of their stamps and of their last accesses. Part of
// ImagesView. Spec/model/images.md, IMG-2 to IMG-4.

import Daybook
import HashTreeCollections

/// The images of one kind.
struct ImageShelf: Sendable {
    struct Image: Hashable, Sendable {
        var file: FileID
        var size: Int
    }

    let kind: ImageKind
    /// Those that nothing has ended.
    private(set) var images: TreeDictionary<EntityID, Register<Image>> = [:]
    /// By image: the greatest stamp of its removals; the floor is that of the last clearing, or
    /// greater.
    var removals: StampTable
    /// By image, cached or not: the greatest stamp of its accesses.
    var accesses: StampTable
    /// Follow from the images and the accesses.
    private(set) var byStamp = SortedIndex<StampPlace>()
    private(set) var byAccess = SortedIndex<StampPlace>()
    private(set) var bytes: Int128 = 0

    init(_ kind: ImageKind, toldApartMax: Int) {
        self.kind = kind
        removals = StampTable(capacity: toldApartMax)
        accesses = StampTable(capacity: toldApartMax)
    }

    private func lastAccess(_ id: EntityID, cached: Stamp) -> Stamp {
        max(cached, accesses.stamps[id] ?? cached)
    }

    subscript(id: EntityID) -> StoredImage? {
        guard let register = images[id] else { return nil }
        return StoredImage(
            kind: kind, id: id.string, file: register.value.file, size: register.value.size,
            lastAccessedAt: lastAccess(id, cached: register.stamp).time, stamp: register.stamp)
    }

    /// Sets an image if it is newer than the one that is there.
    ///
    /// - Returns: whether it was set, and what it has replaced.
    mutating func set(
        _ image: Image, _ id: EntityID, _ stamp: Stamp
    ) -> (isSet: Bool, old: Image?) {
        guard images[id].map({ $0.stamp < stamp }) ?? true else { return (false, nil) }
        let old = remove(id)
        images[id] = Register(image, stamp)
        byStamp.insert(StampPlace(stamp: stamp, key: id))
        byAccess.insert(StampPlace(stamp: lastAccess(id, cached: stamp), key: id))
        bytes += Int128(image.size)
        return (true, old)
    }

    /// Takes an image out.
    mutating func remove(_ id: EntityID) -> Image? {
        guard let register = images.removeValue(forKey: id) else { return nil }
        byStamp.remove(StampPlace(stamp: register.stamp, key: id))
        byAccess.remove(StampPlace(stamp: lastAccess(id, cached: register.stamp), key: id))
        bytes -= Int128(register.value.size)
        return register.value
    }

    /// Takes in an access.
    mutating func access(_ id: EntityID, _ stamp: Stamp) {
        let cached = images[id]?.stamp
        let old = cached.map { lastAccess(id, cached: $0) }
        let gone = accesses.set(stamp, of: id)
        if let cached, let old { move(id, from: old, to: lastAccess(id, cached: cached)) }
        // An access that is forgotten is no last one any more.
        for place in gone where place.key != id {
            guard let cached = images[place.key]?.stamp else { continue }
            move(place.key, from: max(cached, place.stamp), to: cached)
        }
    }

    private mutating func move(_ id: EntityID, from old: Stamp, to new: Stamp) {
        guard old != new else { return }
        byAccess.remove(StampPlace(stamp: old, key: id))
        byAccess.insert(StampPlace(stamp: new, key: id))
    }

    // MARK: Stored state

    func write(to writer: inout StateWriter) {
        removals.write(to: &writer)
        accesses.write(to: &writer)
        var entries = writer.entries(count: images.count)
        for (id, register) in images {
            writer.begin(id, of: &entries)
            writer.add(register.value.file)
            writer.add(count: register.value.size)
            writer.add(register.stamp)
        }
        writer.end(entries)
    }

    init(_ kind: ImageKind, _ reader: inout StateReader) throws(EventError) {
        self.init(kind, toldApartMax: kind.toldApartMax)
        removals = try StampTable(&reader, capacity: kind.toldApartMax)
        accesses = try StampTable(&reader, capacity: kind.toldApartMax)
        var read: [(EntityID, Image, Stamp)] = []
        try reader.entries { (reader, id) throws(EventError) in
            let image = Image(file: try reader.file(), size: try reader.nonNegative())
            read.append((id, image, try reader.stamp()))
        }
        for (id, image, stamp) in read { _ = set(image, id, stamp) }
    }
}

extension ImageKind {
    /// How many images that were removed, and how many that were looked at, are told apart. Twice
    /// the greatest limit: what is among the last that were used can be cached anew in time.
    var toldApartMax: Int { 2 * limitMax }

    /// The greatest limit that counts.
    var limitMax: Int {
        switch self {
        case .thumbnail: 16_384
        case .preview, .albumThumbnail: 2_048
        }
    }
}

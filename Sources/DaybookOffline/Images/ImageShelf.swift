// The cached images of one kind, sorted by LWW timestamp and by last access. Part of ImagesView.
// Spec/model/images.md, IMG-2 to IMG-4.

import Daybook
import HashTreeCollections

/// The images of one kind.
struct ImageShelf: Sendable {
    struct Image: Hashable, Sendable {
        var file: FileID
        var size: Int
    }

    let kind: ImageKind
    /// The cached images.
    private(set) var images: TreeDictionary<EntityID, Register<Image>> = [:]
    /// The greatest LWW timestamp of each image's removals. The floor is at least that of the last clearing.
    var removals: LWWTimestampTable
    /// The greatest LWW timestamp of each image's accesses, whether it is cached or not.
    private(set) var accesses: LWWTimestampTable
    /// The times of the tracked accesses whose events have another time: the clock had been ahead.
    private var accessTimes: TreeDictionary<EntityID, Timestamp> = [:]
    /// Indexes, computed from the images and the accesses.
    private(set) var byLWWTimestamp = SortedIndex<LWWTimestampEntry>()
    private(set) var byAccess = SortedIndex<LWWTimestampEntry>()
    private(set) var bytes: Int128 = 0

    init(_ kind: ImageKind, trackedMax: Int) {
        self.kind = kind
        removals = LWWTimestampTable(capacity: trackedMax)
        accesses = LWWTimestampTable(capacity: trackedMax)
    }

    /// The LWW timestamp of the last access, which the next one replaces. Caching counts as an access.
    func accessTimestamp(_ id: EntityID) -> LWWTimestamp? {
        images[id].map { max($0.lwwTimestamp, accesses.lwwTimestamps[id] ?? $0.lwwTimestamp) }
    }

    /// The last access, with its own time, as images are sorted by it.
    private func lastAccess(_ id: EntityID, cached: LWWTimestamp) -> LWWTimestamp {
        guard let access = accesses.lwwTimestamps[id], access > cached else { return cached }
        return Self.access(access, at: accessTimes[id])
    }

    private static func access(_ access: LWWTimestamp, at time: Timestamp?) -> LWWTimestamp {
        guard let time else { return access }
        return LWWTimestamp(time: time, source: access.source, sequence: access.sequence)
    }

    subscript(id: EntityID) -> StoredImage? {
        guard let register = images[id] else { return nil }
        return StoredImage(
            kind: kind, id: id.string, file: register.value.file, size: register.value.size,
            lastAccessedAt: lastAccess(id, cached: register.lwwTimestamp).time,
            lwwTimestamp: register.lwwTimestamp)
    }

    /// Sets an image if it is newer than the current one.
    ///
    /// - Returns: true if it was set, and the image that it replaced.
    mutating func set(
        _ image: Image, _ id: EntityID, _ lwwTimestamp: LWWTimestamp
    ) -> (isSet: Bool, old: Image?) {
        guard images[id].map({ $0.lwwTimestamp < lwwTimestamp }) ?? true else {
            return (false, nil)
        }
        let old = remove(id)
        images[id] = Register(image, lwwTimestamp)
        byLWWTimestamp.insert(LWWTimestampEntry(lwwTimestamp: lwwTimestamp, key: id))
        byAccess.insert(
            LWWTimestampEntry(lwwTimestamp: lastAccess(id, cached: lwwTimestamp), key: id))
        bytes += Int128(image.size)
        return (true, old)
    }

    /// Removes an image.
    mutating func remove(_ id: EntityID) -> Image? {
        guard let register = images.removeValue(forKey: id) else { return nil }
        byLWWTimestamp.remove(LWWTimestampEntry(lwwTimestamp: register.lwwTimestamp, key: id))
        byAccess.remove(
            LWWTimestampEntry(lwwTimestamp: lastAccess(id, cached: register.lwwTimestamp), key: id))
        bytes -= Int128(register.value.size)
        return register.value
    }

    /// Applies an access.
    ///
    /// - Parameter time: the time of the access; nil for that of the event.
    mutating func applyAccess(
        _ id: EntityID, _ lwwTimestamp: LWWTimestamp, at time: Timestamp?
    ) {
        let cached = images[id]?.lwwTimestamp
        let old = cached.map { lastAccess(id, cached: $0) }
        let evicted = accesses.set(lwwTimestamp, of: id)
        if accesses.lwwTimestamps[id] == lwwTimestamp { accessTimes[id] = time }
        if accesses.lwwTimestamps[id] == nil { accessTimes[id] = nil }
        if let cached, let old { move(id, from: old, to: lastAccess(id, cached: cached)) }
        // An image whose access is not tracked any more is sorted by the time of its caching.
        for entry in evicted where entry.key != id {
            let time = accessTimes.removeValue(forKey: entry.key)
            guard let cached = images[entry.key]?.lwwTimestamp, entry.lwwTimestamp > cached else {
                continue
            }
            move(entry.key, from: Self.access(entry.lwwTimestamp, at: time), to: cached)
        }
    }

    /// Forgets the accesses up to an LWW timestamp. Every image must have been cached after it.
    mutating func clearAccesses(through lwwTimestamp: LWWTimestamp) {
        for entry in accesses.raise(to: lwwTimestamp) { accessTimes[entry.key] = nil }
    }

    private mutating func move(_ id: EntityID, from old: LWWTimestamp, to new: LWWTimestamp) {
        guard old != new else { return }
        byAccess.remove(LWWTimestampEntry(lwwTimestamp: old, key: id))
        byAccess.insert(LWWTimestampEntry(lwwTimestamp: new, key: id))
    }

    // MARK: Stored state

    func write(to writer: inout StateWriter) {
        removals.write(to: &writer)
        accesses.write(to: &writer)
        var times = writer.entries(count: accessTimes.count)
        for (id, time) in accessTimes {
            writer.begin(id, of: &times)
            writer.write(time)
        }
        writer.end(times)
        var entries = writer.entries(count: images.count)
        for (id, register) in images {
            writer.begin(id, of: &entries)
            writer.write(register.value.file)
            writer.write(count: register.value.size)
            writer.write(register.lwwTimestamp)
        }
        writer.end(entries)
    }

    init(_ kind: ImageKind, _ reader: inout StateReader) throws(EventError) {
        self.init(kind, trackedMax: kind.trackedMax)
        removals = try LWWTimestampTable(&reader, capacity: kind.trackedMax)
        accesses = try LWWTimestampTable(&reader, capacity: kind.trackedMax)
        var times: [(EntityID, Timestamp)] = []
        try reader.entries { (reader, id) throws(EventError) in
            times.append((id, try reader.time()))
        }
        for (id, time) in times {
            guard accesses.lwwTimestamps[id] != nil else {
                throw reader.fault("the time of an access is of none")
            }
            accessTimes[id] = time
        }
        var read: [(EntityID, Image, LWWTimestamp)] = []
        try reader.entries { (reader, id) throws(EventError) in
            let image = Image(file: try reader.file(), size: try reader.nonNegative())
            read.append((id, image, try reader.lwwTimestamp()))
        }
        for (id, image, lwwTimestamp) in read { _ = set(image, id, lwwTimestamp) }
    }
}

extension ImageKind {
    /// The number of tracked ids, of removals and of accesses each. Twice the greatest limit, so that every
    /// image among the last used is cached again before the floors reach it.
    var trackedMax: Int { 2 * limitMax }

    /// The greatest effective limit.
    var limitMax: Int {
        switch self {
        case .thumbnail: 16_384
        case .preview, .albumThumbnail: 2_048
        }
    }
}

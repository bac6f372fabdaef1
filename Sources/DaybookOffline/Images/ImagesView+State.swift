// The state of ImagesView as bytes, and which events it still needs. Spec/model/views.md, VIEW-10;
// Spec/format/compaction.md, CMP-3.

import Daybook

extension ImagesView {
    public func encodedState() -> [UInt8]? {
        var writer = StateWriter()
        writer.add(count: ignored)
        assets.write(to: &writer)
        albums.write(to: &writer)
        for shelf in shelves { shelf.write(to: &writer) }
        return writer.bytes
    }

    public init(encodedState: [UInt8]) throws {
        var reader = StateReader(encodedState)
        self.init()
        ignored = try reader.tally()
        assets = try StampTable(&reader, capacity: Self.sourcesMax)
        albums = try StampTable(&reader, capacity: Self.sourcesMax)
        for kind in ImageKind.allCases {
            shelves[kind.index] = try ImageShelf(kind, &reader)
            for (id, register) in shelves[kind.index].images {
                guard ended(kind, id).map({ $0 < register.stamp }) ?? true else {
                    throw reader.fault("an image has ended")
                }
                files[register.value.file, default: 0] += 1
            }
        }
        try reader.finish()
    }
}

extension ImagesView: CompactableView {
    /// An image is needed while it is there, an access while it is the last of its image. What has
    /// ended images is needed while it is told apart, and once more where it is the floor of all
    /// that are not.
    public func retention(of event: Event) -> Retention {
        guard Self.folds(event.type) else { return .unconcerned }
        do {
            switch event.type {
            case ImageCached.type:
                let cached = try event.payload(as: ImageCached.self)
                let id = EntityID(cached.id)
                let holder = shelves[cached.kind.index].images[id]?.stamp
                if holder == event.stamp { return .needed(.current) }
                return .of(event, after: [stamp(cached.kind, id)])
            case ImageRemoved.type:
                let removed = try event.payload(as: ImageRemoved.self)
                return retention(
                    of: event, shelves[removed.kind.index].removals, removed.id, .deletion)
            case ImageAccessed.type:
                let accessed = try event.payload(as: ImageAccessed.self)
                return retention(
                    of: event, shelves[accessed.kind.index].accesses, accessed.id, .current)
            case ImagesCleared.type:
                let floors = try event.payload(as: ImagesCleared.self).kinds.flatMap { kind in
                    [shelves[kind.index].removals.floor, shelves[kind.index].accesses.floor]
                }
                if floors.contains(event.stamp) { return .needed(.deletion) }
                return .of(event, after: floors)
            case AssetRemoved.type:
                return retention(
                    of: event, assets, try event.payload(as: AssetRemoved.self).assetId, .deletion)
            default:
                guard let album = try Self.changedAlbum(event) else { return .unconcerned }
                return retention(of: event, albums, album, .deletion)
            }
        } catch { return .needed(.notUnderstood) }
    }

    private func retention(
        of event: Event, _ table: StampTable, _ id: String, _ reason: KeptReason
    ) -> Retention {
        let id = EntityID(id)
        if table.isHeld(by: event.stamp, for: id) { return .needed(reason) }
        return .of(event, after: [table.bound(of: id)])
    }
}

extension Retention {
    /// What becomes of an event that holds nothing: it is superseded by those that came after it.
    /// If one of them is missing, it was not folded.
    fileprivate static func of(_ event: Event, after holders: [Stamp?]) -> Retention {
        let stamps = holders.compactMap(\.self)
        guard stamps.count == holders.count, !stamps.isEmpty,
            stamps.allSatisfy({ $0 > event.stamp })
        else { return .needed(.current) }
        return .superseded(by: stamps)
    }
}

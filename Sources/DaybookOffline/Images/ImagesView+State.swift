// The encoded state of ImagesView, and the events that it still needs. Spec/model/views.md, VIEW-10;
// Spec/format/compaction.md, CMP-3.

import Daybook

extension ImagesView {
    public func encodedState() -> [UInt8]? {
        var writer = StateWriter()
        writer.write(count: ignored)
        assets.write(to: &writer)
        albums.write(to: &writer)
        for shelf in shelves { shelf.write(to: &writer) }
        return writer.bytes
    }

    public init(encodedState: [UInt8]) throws {
        var reader = StateReader(encodedState)
        self.init()
        ignored = try reader.tally()
        assets = try LWWTimestampTable(&reader, capacity: Self.sourcesMax)
        albums = try LWWTimestampTable(&reader, capacity: Self.sourcesMax)
        for kind in ImageKind.allCases {
            shelves[kind.index] = try ImageShelf(kind, &reader)
            for (id, register) in shelves[kind.index].images {
                guard endingTimestamp(kind, id).map({ $0 < register.lwwTimestamp }) ?? true else {
                    throw reader.fault("an image has ended")
                }
                files[register.value.file, default: 0] += 1
            }
        }
        try reader.finish()
    }
}

extension ImagesView: CompactableView {
    /// The event of a cached image is needed, and the last access of an image. An event that ends images is
    /// needed while a table tracks it or has its LWW timestamp as floor.
    public func retention(of event: Event) -> Retention {
        guard Self.folds(event.type) else { return .unconcerned }
        do {
            switch event.type {
            case ImageCached.type:
                let cached = try event.payload(as: ImageCached.self)
                let id = EntityID(cached.id)
                let winner = shelves[cached.kind.index].images[id]?.lwwTimestamp
                if winner == event.lwwTimestamp { return .needed(.current) }
                return .ofSuperseded(event, by: [lwwTimestamp(cached.kind, id)])
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
                if floors.contains(event.lwwTimestamp) { return .needed(.deletion) }
                return .ofSuperseded(event, by: floors)
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
        of event: Event, _ table: LWWTimestampTable, _ id: String, _ reason: KeptReason
    ) -> Retention {
        let id = EntityID(id)
        if table.depends(on: event.lwwTimestamp, for: id) { return .needed(reason) }
        return .ofSuperseded(event, by: [table.bound(of: id)])
    }
}

extension Retention {
    /// Returns the retention of an event that is not a winner: superseded by the given ones. It is needed if
    /// one of them is missing or not greater, because then it was not folded.
    fileprivate static func ofSuperseded(_ event: Event, by winners: [LWWTimestamp?]) -> Retention {
        let lwwTimestamps = winners.compactMap(\.self)
        guard lwwTimestamps.count == winners.count, !lwwTimestamps.isEmpty,
            lwwTimestamps.allSatisfy({ $0 > event.lwwTimestamp })
        else { return .needed(.current) }
        return .superseded(by: lwwTimestamps)
    }
}

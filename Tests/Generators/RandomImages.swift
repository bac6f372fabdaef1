// Events of few cached images, and of the assets and albums that end them, so that they meet. Feeds
// EventHistory; part of RandomEvents.

import DaybookOffline
import DaybookTestKit
import Foundation

extension Choices {
    /// The data of any event that the image cache has to do with.
    package mutating func imagePayload() -> any EventPayload {
        let kind = element(of: ImageKind.allCases)
        let id = entityID()
        switch int(in: 0...11) {
        case 0...4:
            return ImageCached(
                kind: kind, id: id, file: FileID(of: [UInt8(int(in: 0...3))]),
                size: bool(oneIn: 9) ? .max : int(in: 0...9))
        case 5, 6: return ImageAccessed(kind: kind, id: id)
        case 7:
            return ImageRemoved(
                kind: kind, id: id, reason: element(of: ImageRemoved.Reason.allCases))
        case 8:
            // Seldom: it ends very much.
            return bool(oneIn: 3)
                ? ImagesCleared(kinds: [kind] + array(0...1) { $0.element(of: ImageKind.allCases) })
                : ImageAccessed(kind: kind, id: id)
        case 9: return AssetRemoved(assetId: id)
        case 10: return AlbumRemoved(albumId: id)
        default: return albumChange(id)
        }
    }

    private mutating func albumChange(_ id: String) -> any EventPayload {
        switch int(in: 0...2) {
        case 0: return AlbumLinked(AlbumLinks(albumId: id, assetIds: [entityID()]))
        case 1: return AlbumUnlinked(AlbumLinks(albumId: id, userIds: [entityID()]))
        default:
            let time = ZonedTime(Timestamp(milliseconds: Int64(int(in: 0...9))))
            return AlbumStored(
                Album(id: id, ownerId: "u", name: "", createdAt: time, modifiedAt: time))
        }
    }
}

// Events of photos, albums and the device's media library about few ids, so that they affect each other:
// several assets with one remote id, links to missing assets. Part of RandomEvents.

import DaybookOffline
import DaybookTestKit
import Foundation

extension Choices {
    private static let assetIDs = ["a", "b", "c", "caf\u{E9}", "cafe\u{301}", "a\u{1}\"\\"]

    /// Draws an asset with few different keys.
    package mutating func asset(id: String? = nil) -> Asset {
        var asset = Asset(
            id: id ?? element(of: Self.assetIDs), ownerId: element(of: ["u", "caf\u{E9}"]),
            checksum: element(of: ["1", "2", "3"]), type: element(of: AssetType.allCases),
            fileName: element(of: ["", "IMG.jpg", "\u{0}\"\\\u{1F}"]), fileCreatedAt: takenAt(),
            fileModifiedAt: zonedTime(), updatedAt: zonedTime())
        if bool() { asset.remoteId = element(of: ["r", "s", "cafe\u{301}"]) }
        if bool() { asset.localId = element(of: ["1000", "1001", "caf\u{E9}/L0/001"]) }
        guard bool() else { return asset }
        asset.durationSeconds = bool() ? Double(int(in: 0...99)) / 7 : nil
        if bool() { (asset.width, asset.height) = (int(in: 0...9), .max) }
        if bool(oneIn: 4) { asset.livePhotoVideoId = element(of: Self.assetIDs) }
        asset.isFavorite = bool()
        asset.isArchived = bool()
        asset.isTrashed = bool(oneIn: 4)
        asset.isChecksumOfDevice = bool(oneIn: 4)
        asset.isChangedOnServer = bool(oneIn: 4)
        return asset
    }

    /// Draws one of few times, some with another offset, some at the ends of the range.
    private mutating func takenAt() -> ZonedTime {
        guard bool(oneIn: 4) else {
            return ZonedTime(Timestamp(milliseconds: Int64(int(in: -3...9))))
        }
        let ends = [Timestamp(milliseconds: .min), Timestamp(milliseconds: .max)]
        return bool() ? zonedTime() : ZonedTime(element(of: ends))
    }

    /// Draws the data of any event of photos, albums and the device's media library.
    package mutating func mediaPayload() throws -> any EventPayload {
        switch int(in: 0...11) {
        case 0...3:
            let properties = #"{"exif":{"iso":100,"lens":"f\/2 \#(int(in: 0...9))"},"x":[1,null]}"#
            return AssetStored(asset(), properties: bool(oneIn: 3) ? Array(properties.utf8) : nil)
        case 4: return try payload(AssetRemoved.self, identifiers: Self.assetIDs)
        case 5...9:
            return try payload(
                ofAny: [
                    AlbumStored.self, AlbumStored.self, AlbumRemoved.self, AlbumUnlinked.self,
                    AlbumLinked.self, AlbumLinked.self,
                ], identifiers: Self.assetIDs)
        default:
            return try payload(
                ofAny: [
                    BackupAlbumStored.self, BackupAlbumRemoved.self, DuplicateStored.self,
                    DuplicateRemoved.self, ETagStored.self, ETagRemoved.self,
                    DeviceAssetStored.self, DeviceAssetRemoved.self,
                ], identifiers: Self.assetIDs)
        }
    }
}

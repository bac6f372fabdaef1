// The code of the article "Managing photos and albums".

import DaybookOffline
import Foundation

/// The app's access to the device's media library.
package protocol MediaLibrary: Sendable {
    /// Deletes files and returns the ids of those that are gone.
    func delete(_ localIds: [String]) async throws -> [String]
    /// The albums that contain a file.
    func albums(of localId: String) -> [String]
}

/// The app's access to its server of photos.
package protocol MediaServer: Sendable {
    /// The changes since a tag.
    func assets(of userId: String, unless eTag: String?) async throws -> AssetUpdate
    /// Uploads a photo.
    func upload(_ photo: Asset) async throws
}

package enum Media {
    package static func put(_ store: OfflineStore) async throws -> [UInt8]? {
        // Media-1 begins
        let taken = ZonedTime(Timestamp(Date()))
        let photo = Asset(
            id: "asset-1", localId: "1000012", ownerId: "user-456",
            checksum: "bXPJ4d7Jb1eY6sRzFq==",
            type: .image, fileName: "IMG_0042.jpg", fileCreatedAt: taken, fileModifiedAt: taken,
            updatedAt: taken)
        try await store.assets.put(photo)
        // Media-1 ends
        // Media-2 begins
        try await store.assets.put(photo, properties: Array(#"{"exif":{"iso":100}}"#.utf8))
        let properties = try await store.assets.properties(of: "asset-1")
        // Media-2 ends
        return properties
    }

    package static func putAll(_ store: OfflineStore, _ page: [Asset]) async throws {
        // Media-3 begins
        try await store.assets.putAll(page)
        try await store.assets.deleteAllByRemoteId(["remote-7", "remote-8"])
        // Media-3 ends
    }

    package static func putUnread(
        _ store: OfflineStore, _ photosOfTheLibrary: [Asset]
    ) async throws -> [AssetFault] {
        // Media-9 begins
        let new = photosOfTheLibrary.filter { photo in
            photo.localId.map { store.assets.asset(localId: $0).current == nil } ?? true
        }
        try await store.assets.putInBatches(new)
        let leftOut = try await store.assets.setChecksums(["asset-1": "bXPJ4d7Jb1eY6sRzFq=="])
        // Media-9 ends
        return leftOut
    }

    package static func find(
        _ store: OfflineStore, _ first: Timestamp, _ last: Timestamp
    ) async -> (Asset?, [Asset]) {
        // Media-4 begins
        let asset = store.assets.asset(remoteId: "remote-1").current
        let mine = store.assets.assets(ownedBy: "user-456").current
        for await month in store.assets.assets(takenFrom: first, through: last).changes {
            print(month.map(\.fileName))  // in the order in which they were taken
            break
        }
        // Media-4 ends
        return (asset, mine)
    }

    package static func albums(_ store: OfflineStore) async throws {
        // Media-5 begins
        let now = ZonedTime(Timestamp(Date()))
        try await store.albums.put(
            Album(
                id: "summer", ownerId: "user-456", name: "Summer", createdAt: now, modifiedAt: now))
        try await store.albums.link("summer", assets: ["asset-1"], users: ["user-789"])
        print(store.albums.assets(of: "summer").map(\.fileName))
        print(store.albums.albums(containing: "asset-1").current.map(\.name))
        // Media-5 ends
    }

    package static func freeSpace(
        _ store: OfflineStore, _ library: some MediaLibrary
    ) async throws -> [String] {
        // Media-6 begins
        var settings = CleanUpSettings(keepMediaType: .videos, keepAlbumIds: ["summer"])
        settings.cutoffDaysAgo = 30
        print(await store.assets.cleanUpCandidates(settings).count)
        let freed = try await store.assets.freeUpSpace(settings) { localIds in
            try await library.delete(localIds)  // returns the ids that are gone
        }
        // Media-6 ends
        return freed
    }

    package static func refresh(
        _ store: OfflineStore, _ server: some MediaServer
    ) async throws {
        // Media-7 begins
        try await store.assets.refresh(of: "user-456") { eTag, last in
            try await server.assets(of: "user-456", unless: eTag)
        }
        // Media-7 ends
    }

    package static func backUp(
        _ store: OfflineStore, _ server: some MediaServer, _ library: some MediaLibrary
    ) async throws {
        // Media-8 begins
        let conditions = BackupConditions(network: .wifi, isCharging: true)
        guard store.deviceMedia.backupDecision(under: conditions) == .start else { return }
        for photo in store.deviceMedia.backupCandidates(albums: { library.albums(of: $0) }) {
            try await server.upload(photo)
            if let localId = photo.localId { try await store.deviceMedia.addDuplicates([localId]) }
        }
        try await store.deviceMedia.recordBackup(of: ["camera"])
        // Media-8 ends
    }
}

// The library of a heavy user. Each asset is computed from its number, so that none need be stored.

import DaybookOffline
import DaybookTestKit
import Foundation

/// Assets as a server with UUIDs and SHA-1 checksums has them.
struct SampleLibrary: Sendable {
    let assets: Int
    let owners: Int
    let seed: UInt64

    var all: some Sequence<Asset> { (0..<assets).lazy.map(asset) }

    func owner(_ number: Int) -> String {
        var random = SeededRandom(seed: seed &+ 0xABCD &+ UInt64(number))
        return Self.uuid(&random)
    }

    func asset(_ number: Int) -> Asset {
        var random = SeededRandom(seed: seed &* 1_000_003 &+ UInt64(number))
        let id = Self.uuid(&random)
        let remoteId = Self.uuid(&random)
        let checksum = Data((0..<20).map { _ in UInt8(truncatingIfNeeded: random.next()) })
        let day = random.next() % (UInt64(AssetReads.days) * 86_400_000)
        let taken = ZonedTime(Timestamp(milliseconds: AssetReads.start + Int64(day)))
        let changed = ZonedTime(Timestamp(milliseconds: taken.moment.milliseconds + 5_000))
        let isVideo = random.next() % 10 == 0
        return Asset(
            id: id, remoteId: remoteId,
            localId: random.next() % 2 == 0 ? "\(1_000_000_000 + number)" : nil,
            ownerId: owner(number % owners), checksum: checksum.base64EncodedString(),
            type: isVideo ? .video : .image, fileName: "IMG_\(number).\(isVideo ? "mp4" : "jpg")",
            fileCreatedAt: taken, fileModifiedAt: changed, updatedAt: changed,
            durationSeconds: isVideo ? 12.5 : nil, width: 4_032, height: 3_024,
            isFavorite: random.next() % 20 == 0)
    }

    private static func uuid(_ random: inout SeededRandom) -> String {
        UUID(integer: UInt128(random.next()) << 64 | UInt128(random.next())).text
    }
}

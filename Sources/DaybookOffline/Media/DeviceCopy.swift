// Compares the file of an asset on the device with what was backed up. Spec/model/media.md, MED-22.

import Daybook

/// The relation of the hashes of the device's files to the checksums of assets, which only the app knows.
public enum DeviceHashes: Hashable, Sendable {
    /// The relation is not declared. A file whose hash differs from the checksum is kept, unless the app decides
    /// otherwise (`CleanUpSettings.keepUnverified`), and is not uploaded again.
    case undeclared
    /// Both are of one kind: a file was edited since its backup if and only if they differ.
    case checksums
    /// They are of different kinds and are not compared. Only the times of the last changes say that a file is
    /// what was backed up.
    case ofAnotherKind
}

/// The state of the file of an asset on the device, compared with its backup.
enum DeviceCopy {
    /// It is the file that was backed up.
    case same
    /// It was changed since its backup.
    case edited
    /// The server has reported another content since the backup, and nothing shows that it has this one.
    case changedOnServer
    /// Nothing shows that the server has the file: the store has no record of it, no checksum or no time to compare
    /// with, or the hash differs from a checksum that may be of another kind.
    case unverified
}

extension DeviceMediaView {
    /// Compares the file of an asset on the device with its backup. O(1).
    func copy(of record: AssetRecord, _ hashes: DeviceHashes) -> DeviceCopy {
        guard let localId = record.localId, let asset = record.asset else { return .unverified }
        let files = files(localId)
        if files.contains(where: { isEdited($0, asset, hashes) }) { return .edited }
        let hasHash =
            asset.checksum.map { checksum in
                files.allSatisfy { EntityID($0.hash) == EntityID(checksum) }
            } ?? false
        let isCompared = hashes != .ofAnotherKind && !asset.isChecksumOfDevice && !files.isEmpty
        if asset.isChangedOnServer, !(isCompared && hasHash) { return .changedOnServer }
        guard asset.checksum != nil, !files.isEmpty else { return .unverified }
        // `isEdited` has compared the times.
        let hasTime = files.allSatisfy { $0.modifiedTime != nil }
        let needsTime = asset.isChecksumOfDevice || hashes == .ofAnotherKind
        let isSame = (hasTime || !needsTime) && (hasHash || hashes == .ofAnotherKind)
        return isSame ? .same : .unverified
    }

    /// Whether a file was changed after it was recorded as a duplicate. O(1).
    func isChangedSinceDuplicate(_ localId: String) -> Bool {
        guard isDuplicate(localId), let recorded = lwwTimestamp(ofDuplicate: localId)?.time else {
            return false
        }
        return files(localId).contains { $0.modifiedTime.map { $0.moment > recorded } ?? false }
    }

    /// Whether the edited file of an asset on the server must be uploaded: the server does not have its
    /// content, as far as the checksums of its owner's assets and the duplicates say. O(1).
    func mustUploadEdit(of record: AssetRecord, _ hashes: DeviceHashes, _ assets: AssetsView)
        -> Bool
    {
        guard copy(of: record, hashes) == .edited, let asset = record.asset,
            let localId = asset.localId
        else { return false }
        let files = files(localId)
        let isOnServer =
            hashes == .checksums
            && files.contains { file in
                assets.all(ownerId: asset.ownerId, checksum: file.hash)
                    .contains { other in
                        other.asset.map { $0.remoteId != nil && !$0.isChecksumOfDevice } ?? false
                    }
            }
        // The duplicate of a file without a time of its last change may be older than the edit.
        let isUploaded =
            isDuplicate(localId) && files.contains { $0.modifiedTime != nil }
            && !isChangedSinceDuplicate(localId)
        return !isOnServer && !isUploaded
    }

    private func files(_ localId: String) -> [DeviceAsset] {
        DevicePlatform.allCases.compactMap { deviceAsset(localId, on: $0) }
    }

    private func isEdited(_ file: DeviceAsset, _ asset: Asset, _ hashes: DeviceHashes) -> Bool {
        let isLater =
            file.modifiedTime.map { $0.moment > asset.fileModifiedAt.moment } ?? false
        guard hashes == .checksums, let checksum = asset.checksum else { return isLater }
        return EntityID(file.hash) != EntityID(checksum) || asset.isChecksumOfDevice && isLater
    }
}

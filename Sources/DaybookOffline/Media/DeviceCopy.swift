// Compares the file of an asset on the device with what was backed up. Spec/model/media.md, MED-22.

import Daybook

/// The relation of the hashes of the device's files to the checksums of assets, which only the app knows.
public enum DeviceHashes: Hashable, Sendable {
    /// The relation is not declared. A file whose hash differs from the checksum is kept, and is not
    /// uploaded again.
    case undeclared
    /// Both are of one kind: a file was edited since its backup if and only if they differ.
    case checksums
    /// They are of different kinds and are not compared.
    case ofAnotherKind
}

/// The state of the file of an asset on the device, compared with its backup.
enum DeviceCopy {
    /// The store has no record of the file.
    case unrecorded
    /// It is the file that was backed up, as far as the record says.
    case same
    /// It was changed since its backup.
    case edited
    /// Its hash differs from the checksum, which may be of another kind; or no checksum is known, so that nothing
    /// shows that the server has the file.
    case different
}

extension DeviceMediaView {
    /// Compares the file of an asset on the device with its backup. O(1).
    func copy(of record: AssetRecord, _ hashes: DeviceHashes) -> DeviceCopy {
        guard let localId = record.localId else { return .unrecorded }
        let files = files(localId)
        guard let asset = record.asset else { return .unrecorded }
        if files.contains(where: { isEdited($0, asset, hashes) }) { return .edited }
        guard asset.checksum != nil else { return .different }
        guard !files.isEmpty else { return .unrecorded }
        let isDifferent = files.contains { $0.hash != asset.checksum }
        return hashes != .ofAnotherKind && isDifferent ? .different : .same
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
                    .contains { $0.asset?.remoteId != nil }
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
        if hashes == .checksums, let checksum = asset.checksum {
            return EntityID(file.hash) != EntityID(checksum)
        }
        guard let modified = file.modifiedTime?.moment else { return false }
        return modified > asset.fileModifiedAt.moment
    }
}

// An asset in memory: the bytes of its entry in the stored state, so that one asset is one allocation.
// AssetsView creates records and indexes them by the keys in their bytes. Spec/model/media.md, MED-9.

import Daybook
import Foundation

/// The register of an asset: stored or removed.
///
/// The order of the bytes: the id, the LWW timestamp, a tag. After the tag of a stored asset: the id of its
/// event, two bytes of flags, the time at which it was taken, the owner, the checksum (empty for none), the remote
/// and the local id if there are any, and the remaining members.
struct AssetRecord: Sendable {
    let bytes: [UInt8]

    private enum Tag {
        static let removed: UInt8 = 0
        static let stored: UInt8 = 1
    }

    private struct Flags: OptionSet {
        let rawValue: UInt16
        static let favorite = Flags(rawValue: 1)
        static let archived = Flags(rawValue: 1 << 1)
        static let trashed = Flags(rawValue: 1 << 2)
        static let properties = Flags(rawValue: 1 << 3)
        static let remoteId = Flags(rawValue: 1 << 4)
        static let localId = Flags(rawValue: 1 << 5)
        static let livePhoto = Flags(rawValue: 1 << 6)
        static let duration = Flags(rawValue: 1 << 7)
        static let width = Flags(rawValue: 1 << 8)
        static let height = Flags(rawValue: 1 << 9)
        /// The offset of the type's code, which has two bits.
        static let typeShift: UInt16 = 10
        static let checksumOfDevice = Flags(rawValue: 1 << 12)
        static let changedOnServer = Flags(rawValue: 1 << 13)

        init(rawValue: UInt16) { self.rawValue = rawValue }

        init(_ asset: Asset, hasProperties: Bool) {
            self = []
            if asset.isFavorite { insert(.favorite) }
            if asset.isArchived { insert(.archived) }
            if asset.isTrashed { insert(.trashed) }
            if hasProperties { insert(.properties) }
            if asset.remoteId != nil { insert(.remoteId) }
            if asset.localId != nil { insert(.localId) }
            if asset.livePhotoVideoId != nil { insert(.livePhoto) }
            if asset.durationSeconds != nil { insert(.duration) }
            if asset.width != nil { insert(.width) }
            if asset.height != nil { insert(.height) }
            if asset.isChecksumOfDevice { insert(.checksumOfDevice) }
            if asset.isChangedOnServer { insert(.changedOnServer) }
            insert(Flags(rawValue: asset.type.code << Self.typeShift))
        }

        var type: AssetType? { AssetType(code: rawValue >> Self.typeShift & 3) }

        /// True if no bit is set that has no meaning.
        var isKnown: Bool { rawValue >> 14 == 0 }
    }

    // MARK: Creating a record

    /// Creates the record of a stored asset.
    init(_ stored: AssetStored, _ change: ViewChange) {
        let asset = stored.asset
        var writer = StateWriter()
        writer.write(asset.id)
        writer.write(change.lwwTimestamp)
        writer.write(byte: Tag.stored)
        writer.write(change.event)
        let flags = Flags(asset, hasProperties: stored.properties != nil).rawValue
        writer.write(byte: UInt8(truncatingIfNeeded: flags))
        writer.write(byte: UInt8(truncatingIfNeeded: flags >> 8))
        writer.write(packed: asset.fileCreatedAt)
        writer.write(asset.ownerId)
        writer.write(asset.checksum ?? "")
        if let id = asset.remoteId { writer.write(id) }
        if let id = asset.localId { writer.write(id) }
        writer.write(asset.fileName)
        writer.write(packed: asset.fileModifiedAt)
        writer.write(packed: asset.updatedAt)
        if let id = asset.livePhotoVideoId { writer.write(id) }
        if let duration = asset.durationSeconds { writer.write(duration) }
        if let width = asset.width { writer.write(count: width) }
        if let height = asset.height { writer.write(count: height) }
        bytes = writer.trimmedBytes
    }

    /// Creates the record of a removed asset.
    init(removed assetId: String, _ lwwTimestamp: LWWTimestamp) {
        var writer = StateWriter()
        writer.write(assetId)
        writer.write(lwwTimestamp)
        writer.write(byte: Tag.removed)
        bytes = writer.bytes
    }

    /// Reads and checks an entry of a stored state.
    init(from reader: inout StateReader) throws(EventError) {
        let entry = try reader.bytes { (reader) throws(EventError) in
            try reader.checkString()
            _ = try reader.lwwTimestamp()
            switch try reader.byte() {
            case Tag.removed: break
            case Tag.stored: try Self.check(&reader)
            default: throw reader.fault("an asset has an unknown tag")
            }
        }
        bytes = Array(entry)
    }

    private static func check(_ reader: inout StateReader) throws(EventError) {
        _ = try reader.uuid()
        let flags = try flags(&reader)
        guard flags.type != nil, flags.isKnown else {
            throw reader.fault("an asset has an unknown type or flag")
        }
        try reader.checkPackedTime()
        // The owner, the checksum and the ids.
        let ids = [flags.contains(.remoteId), flags.contains(.localId)].count(where: \.self)
        for _ in 0..<2 + ids { try reader.checkString() }
        try reader.checkString()
        try reader.checkPackedTime()
        try reader.checkPackedTime()
        if flags.contains(.livePhoto) { try reader.checkString() }
        if flags.contains(.duration) {
            let duration = try reader.double()
            guard duration.isFinite else { throw reader.fault("a duration is not a finite number") }
        }
        if flags.contains(.width) { _ = try reader.nonNegative() }
        if flags.contains(.height) { _ = try reader.nonNegative() }
    }

    private static func flags(_ reader: inout StateReader) throws(EventError) -> Flags {
        let low = try reader.byte()
        return Flags(rawValue: UInt16(low) | UInt16(try reader.byte()) << 8)
    }

    // MARK: Reading a record

    /// The LWW timestamp of the event that set the register.
    var lwwTimestamp: LWWTimestamp {
        read { (reader) throws(EventError) in try reader.lwwTimestamp() } ?? .least
    }

    /// True if the asset is stored, false if it was removed.
    var isStored: Bool { bytes[lwwTimestampRange.upperBound] == Tag.stored }

    /// The id of the event that stored it; nil for a removed asset.
    var event: UUID? {
        guard isStored else { return nil }
        return read { (reader) throws(EventError) in
            _ = try reader.lwwTimestamp()
            _ = try reader.byte()
            return try reader.uuid()
        }
    }

    /// True if its event has members that the type does not name.
    var hasProperties: Bool { flags.contains(.properties) }

    /// True if it is a favorite of the user.
    var isFavorite: Bool { flags.contains(.favorite) }

    /// The type of its content.
    var type: AssetType { flags.type ?? .other }

    /// True if both the server and the device have it, and it is not in the server's trash.
    var isBackedUpCopy: Bool {
        flags.isSuperset(of: [.remoteId, .localId]) && !flags.contains(.trashed)
    }

    private var flags: Flags {
        guard isStored else { return [] }
        let offset = lwwTimestampRange.upperBound + 1 + 16
        return Flags(rawValue: UInt16(bytes[offset]) | UInt16(bytes[offset + 1]) << 8)
    }

    /// The id.
    var id: String { string(idRange) }

    /// The device's id, if there is one.
    var localId: String? { localIdRange.flatMap(string) }

    private func string(_ range: Range<Int>) -> String {
        String(decoding: bytes[textRange(range)], as: UTF8.self)
    }

    /// The asset; nil if it was removed.
    var asset: Asset? {
        let tag = lwwTimestampRange.upperBound
        guard bytes[tag] == Tag.stored else { return nil }
        var reader = StateReader(bytes)
        // Cannot fail: the initializers write or check the bytes.
        return try? Self.asset(&reader, flagsAt: tag + 1 + 16)
    }

    private func read<Value>(
        _ body: (inout StateReader) throws(EventError) -> Value
    ) -> Value? {
        var reader = StateReader(bytes)
        do throws(EventError) {
            try reader.skip(idRange.upperBound)
            return try body(&reader)
        } catch { return nil }
    }

    private static func asset(
        _ reader: inout StateReader, flagsAt offset: Int
    ) throws(EventError) -> Asset {
        var start = reader
        let id = try start.string()
        try reader.skip(offset)
        let flags = try flags(&reader)
        let fileCreatedAt = try reader.packedTime()
        let ownerId = try reader.string()
        let checksum = try reader.string()
        let remoteId = flags.contains(.remoteId) ? try reader.string() : nil
        let localId = flags.contains(.localId) ? try reader.string() : nil
        let fileName = try reader.string()
        let fileModifiedAt = try reader.packedTime()
        let updatedAt = try reader.packedTime()
        let livePhotoVideoId = flags.contains(.livePhoto) ? try reader.string() : nil
        let duration = flags.contains(.duration) ? try reader.double() : nil
        let width = flags.contains(.width) ? try reader.nonNegative() : nil
        let height = flags.contains(.height) ? try reader.nonNegative() : nil
        return Asset(
            id: id, remoteId: remoteId, localId: localId, ownerId: ownerId,
            checksum: checksum.isEmpty ? nil : checksum,
            type: flags.type ?? .other, fileName: fileName, fileCreatedAt: fileCreatedAt,
            fileModifiedAt: fileModifiedAt, updatedAt: updatedAt, durationSeconds: duration,
            width: width, height: height, livePhotoVideoId: livePhotoVideoId,
            isFavorite: flags.contains(.favorite), isArchived: flags.contains(.archived),
            isTrashed: flags.contains(.trashed),
            isChecksumOfDevice: flags.contains(.checksumOfDevice),
            isChangedOnServer: flags.contains(.changedOnServer))
    }

    // MARK: Ranges of the keys

    /// The range of the id with its length.
    var idRange: Range<Int> { 0..<endOfString(0) }

    private var lwwTimestampRange: Range<Int> {
        let start = idRange.upperBound
        return start..<endOfNumber(endOfNumber(start) + 16)
    }

    /// The range of the owner and the checksum with their lengths; nil for a removed asset.
    var checksumRange: Range<Int>? {
        let tag = lwwTimestampRange.upperBound
        guard bytes[tag] == Tag.stored else { return nil }
        let start = endOfPackedTime(tag + 1 + 16 + 2)
        return start..<endOfString(endOfString(start))
    }

    /// The range of the owner and the checksum; nil for an asset without a checksum.
    var checksumKeyRange: Range<Int>? {
        guard let range = checksumRange, bytes[endOfString(range.lowerBound)] != 0 else {
            return nil
        }
        return range
    }

    /// The range of the owner with its length.
    var ownerRange: Range<Int>? {
        guard let start = checksumRange?.lowerBound else { return nil }
        return start..<endOfString(start)
    }

    /// The range of the server's id with its length, if there is one.
    var remoteIdRange: Range<Int>? {
        guard flags.contains(.remoteId), let start = checksumRange?.upperBound else { return nil }
        return start..<endOfString(start)
    }

    /// The range of the device's id with its length, if there is one.
    var localIdRange: Range<Int>? {
        guard flags.contains(.localId), let checksum = checksumRange?.upperBound else {
            return nil
        }
        let start = remoteIdRange?.upperBound ?? checksum
        return start..<endOfString(start)
    }

    /// The time at which it was taken; nil for a removed asset.
    var fileCreatedAt: Timestamp? {
        guard isStored else { return nil }
        var reader = StateReader(bytes)
        do throws(EventError) {
            try reader.skip(lwwTimestampRange.upperBound + 1 + 16 + 2)
            return try reader.packedTime().moment
        } catch { return nil }
    }

    private func endOfNumber(_ start: Int) -> Int {
        var offset = start
        while bytes[offset] >= 0x80 { offset += 1 }
        return offset + 1
    }

    private func endOfString(_ start: Int) -> Int {
        var offset = start
        var length = Int(bytes[offset] & 0x7F)
        var shift = 7
        while bytes[offset] >= 0x80 {
            offset += 1
            length |= Int(bytes[offset] & 0x7F) << shift
            shift += 7
        }
        return offset + 1 + length
    }

    private func endOfPackedTime(_ start: Int) -> Int {
        bytes[start] == PackedTime.moment ? endOfNumber(start + 1) : endOfString(start + 1)
    }
}

extension AssetRecord: Comparable {
    /// Compares the bytes.
    static func == (lhs: AssetRecord, rhs: AssetRecord) -> Bool { lhs.bytes == rhs.bytes }

    /// Orders by LWW timestamp, then by id: of several records with one key the greatest is the winner.
    static func < (lhs: AssetRecord, rhs: AssetRecord) -> Bool {
        let (a, b) = (lhs.lwwTimestamp, rhs.lwwTimestamp)
        return a == b ? lhs.idPrecedes(rhs) : a < b
    }

    /// Orders by the bytes of the ids.
    func idPrecedes(_ other: AssetRecord) -> Bool {
        let (a, b) = (idRange, other.idRange)
        // The text begins after its length, whose number of bytes varies.
        let (text, otherText) = (bytes[textRange(a)], other.bytes[other.textRange(b)])
        let (one, two) = (text.span, otherText.span)
        for index in 0..<min(one.count, two.count) where one[index] != two[index] {
            return one[index] < two[index]
        }
        return one.count < two.count
    }

    private func textRange(_ range: Range<Int>) -> Range<Int> {
        endOfNumber(range.lowerBound)..<range.upperBound
    }
}

extension AssetType {
    fileprivate var code: UInt16 {
        switch self {
        case .image: 0
        case .video: 1
        case .audio: 2
        case .other: 3
        }
    }

    fileprivate init?(code: UInt16) {
        guard let type = Self.allCases.first(where: { $0.code == code }) else { return nil }
        self = type
    }
}

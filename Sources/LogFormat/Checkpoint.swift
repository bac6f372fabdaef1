// The file that makes opening a log quick: the states of its views at a position, and the segments up
// to there. A cache: without it, or with a damaged one, opening computes the same from the log.
// Spec/format/checkpoint.md.

/// The bytes of one view's state.
package struct StoredState: Equatable, Sendable {
    /// The view's name.
    package var name: String
    /// The version of the fold that computed the state.
    package var version: UInt32
    /// The fingerprint of the event types with which the state was computed.
    package var types: UInt64
    /// The last position folded into the state.
    package var position: Position
    package var bytes: [UInt8]

    package init(
        name: String, version: UInt32, types: UInt64 = 0, position: Position, bytes: [UInt8]
    ) {
        self.name = name
        self.version = version
        self.types = types
        self.position = position
        self.bytes = bytes
    }
}

/// The live segment at the checkpoint's position.
package struct LiveSnapshot: Equatable, Sendable {
    package var base: Position
    /// The offset after the last commit.
    package var dataEnd: Int
    /// The footer that sealing the segment here would write. Its id index is empty if only the
    /// checkpoint's head was read.
    package private(set) var footer: SegmentFooter
    /// The size of the id index in bytes.
    package let idIndexBytes: Int
    /// The XXH64 of the id index.
    package let idIndexDigest: UInt64

    package init(base: Position, dataEnd: Int, footer: SegmentFooter) {
        self.base = base
        self.dataEnd = dataEnd
        self.footer = footer
        idIndexBytes = footer.idIndex.count
        idIndexDigest = XXH64.hash(footer.idIndex.span.bytes)
    }

    fileprivate init(
        base: Position, dataEnd: Int, footer: SegmentFooter, idIndexBytes: Int,
        idIndexDigest: UInt64
    ) {
        self.base = base
        self.dataEnd = dataEnd
        self.footer = footer
        self.idIndexBytes = idIndexBytes
        self.idIndexDigest = idIndexDigest
    }

    /// Decodes the id index from `bytes`, after checking their size and digest.
    ///
    /// - Throws: `FormatError` (`truncated`, `checksum`, `malformed`) if they are not the bytes that
    ///   the snapshot was made with.
    package func idIndex(_ bytes: [UInt8]) throws(FormatError) -> IDIndex {
        guard bytes.count == idIndexBytes else {
            throw FormatError(.truncated, "the checkpoint's id index has a wrong size")
        }
        guard XXH64.hash(bytes.span.bytes) == idIndexDigest else {
            throw FormatError(.checksum, "the digest of the checkpoint's id index does not match")
        }
        return try IDIndex(bytes)
    }

    fileprivate mutating func attachIDIndex(_ bytes: [UInt8]) throws(FormatError) {
        _ = try idIndex(bytes)
        footer.idIndex = bytes
    }
}

/// The states of views at a position of a log, and the log's segments there.
package struct Checkpoint: Equatable, Sendable {
    package var logID: UInt128
    /// The last position that the checkpoint covers. It was durable before the checkpoint was written.
    package var position: Position
    /// The id of the line at `position`.
    package var lastID: UInt128
    /// The time of writing, in milliseconds since 1970.
    package var createdAt: Int64
    /// The positions that each sealed segment covers, oldest first.
    package var sealed: [ClosedRange<Position>]
    /// The live segment; nil if there was none.
    package var live: LiveSnapshot?
    package var states: [StoredState]

    package init(
        logID: UInt128, position: Position, lastID: UInt128, createdAt: Int64,
        sealed: [ClosedRange<Position>], live: LiveSnapshot?, states: [StoredState]
    ) {
        self.logID = logID
        self.position = position
        self.lastID = lastID
        self.createdAt = createdAt
        self.sealed = sealed
        self.live = live
        self.states = states
    }

    private static let signature = Array("DAYBOOKC".utf8)
    /// The version of the file's layout. A checkpoint of another version is ignored.
    package static let version: UInt16 = 2
    package static let headerBytes = 80
    private static let digestBytes = 8

    // MARK: Writing

    /// Encodes the whole file. O(n).
    ///
    /// - Throws: `malformed` for more than `WriterSizes.checkpointPlaintextBytesMax` bytes of state,
    ///   and for a checkpoint of which only the head was read.
    package func encoded() throws(FormatError) -> [UInt8] {
        if let live, live.footer.idIndex.count != live.idIndexBytes {
            throw FormatError(.malformed, "the checkpoint has no id index")
        }
        let contentBeforeStates = self.contentBeforeStates()
        let bodyBytes = states.reduce(contentBeforeStates.count) {
            $0 + StoredState.fieldBytes + $1.name.utf8.count + $1.bytes.count
        }
        guard bodyBytes <= WriterSizes.checkpointPlaintextBytesMax else {
            throw FormatError(
                .malformed,
                "the states have \(bodyBytes) bytes; a checkpoint holds at most "
                    + "\(WriterSizes.checkpointPlaintextBytesMax)")
        }
        var bytes = Self.signature
        bytes.append(littleEndian: Self.version)
        bytes.append(contentsOf: repeatElement(0, count: 6))
        bytes.append(littleEndian: logID.byteSwapped)
        bytes.append(littleEndian: position.rawValue)
        bytes.append(littleEndian: lastID.byteSwapped)
        bytes.append(littleEndian: createdAt)
        bytes.append(littleEndian: UInt64(bodyBytes))
        var content = FramedContent()
        content.append(contentBeforeStates.span.bytes)
        for state in states {
            content.append(state.fields.span.bytes)
            content.append(state.bytes.span.bytes)
        }
        content.finish()
        bytes.append(
            littleEndian: UInt64(Self.headerBytes + content.frames.count + Self.digestBytes))
        bytes += content.frames
        bytes.append(littleEndian: XXH64.hash(bytes.span.bytes))
        bytes += live?.footer.idIndex ?? []
        return bytes
    }

    /// The content before the first state: the segments and the number of states.
    private func contentBeforeStates() -> [UInt8] {
        var body: [UInt8] = []
        body.append(littleEndian: UInt32(sealed.count))
        for range in sealed {
            body.append(littleEndian: range.lowerBound.rawValue)
            body.append(littleEndian: range.upperBound.rawValue)
        }
        body.append(live == nil ? 0 : 1)
        if let live {
            var footer = live.footer
            footer.idIndex = []
            let footerBytes = footer.encoded()
            body.append(littleEndian: live.base.rawValue)
            body.append(littleEndian: UInt64(live.dataEnd))
            body.append(littleEndian: UInt64(live.idIndexBytes))
            body.append(littleEndian: live.idIndexDigest)
            body.append(littleEndian: UInt32(footerBytes.count))
            body += footerBytes
        }
        body.append(littleEndian: UInt32(states.count))
        return body
    }

    // MARK: Reading

    /// The fields of a header. The digest that covers them has not been checked.
    package struct Header: Equatable, Sendable {
        /// The last position that the checkpoint covers.
        package var position: Position
        /// The id of the checkpoint's log.
        package var logID: UInt128
        /// The time of writing, in milliseconds since 1970.
        package var createdAt: Int64
        /// The size of the head in bytes: the file without the id index, which is needed last.
        package var headBytes: Int
    }

    /// Reads the header from the first bytes of a file; nil if they do not begin a checkpoint of this
    /// version.
    package static func header(_ bytes: RawSpan) -> Header? {
        guard bytes.byteCount >= headerBytes, bytes.matches(signature, at: 0),
            bytes.integer(at: 8, as: UInt16.self) == version
        else { return nil }
        return Header(
            position: Position(bytes.integer(at: 32)),
            logID: bytes.integer(at: 16, as: UInt128.self).byteSwapped,
            createdAt: bytes.integer(at: 56),
            headBytes: Int(clamping: bytes.integer(at: 72, as: UInt64.self)))
    }

    /// Reads a whole file's bytes. Allocates the decoded size, at most
    /// `FormatLimit.checkpointPlaintextBytesMax`, and the id index.
    ///
    /// - Throws: `FormatError`. Any error means that the checkpoint cannot be used.
    package init(_ bytes: RawSpan) throws(FormatError) {
        let headBytes = Self.header(bytes)?.headBytes ?? bytes.byteCount
        guard headBytes <= bytes.byteCount else {
            throw FormatError(.truncated, "the checkpoint ends before its id index")
        }
        try self.init(head: bytes.extracting(0..<headBytes))
        let idIndex = bytes.extracting(headBytes..<bytes.byteCount).array
        guard live != nil || idIndex.isEmpty else {
            throw FormatError(.malformed, "the checkpoint has an id index but no live segment")
        }
        try live?.attachIDIndex(idIndex)
    }

    /// Checks size, version and digest of a head: the file without the live segment's id index. O(bytes).
    ///
    /// - Throws: `FormatError`: `truncated`, `foreign`, `newerVersion`, `checksum`, `malformed`.
    package static func checkDigest(ofHead bytes: RawSpan) throws(FormatError) {
        guard bytes.byteCount >= headerBytes + digestBytes else {
            throw FormatError(.truncated, "the checkpoint ends in its header")
        }
        guard bytes.matches(signature, at: 0) else {
            throw FormatError(.foreign, "the file is not a checkpoint")
        }
        let end = bytes.byteCount - digestBytes
        guard bytes.integer(at: 8, as: UInt16.self) == version else {
            throw FormatError(.newerVersion, "the checkpoint has another version of the layout")
        }
        guard XXH64.hash(bytes.extracting(0..<end)) == bytes.integer(at: end, as: UInt64.self)
        else { throw FormatError(.checksum, "the checkpoint's digest does not match") }
        guard header(bytes)?.headBytes == bytes.byteCount else {
            throw FormatError(.malformed, "the checkpoint's head differs from its declared size")
        }
    }

    /// Reads a head: the file without the live segment's id index.
    ///
    /// - Throws: as `init(_:)`.
    package init(head bytes: RawSpan) throws(FormatError) {
        try Self.checkDigest(ofHead: bytes)
        let end = bytes.byteCount - Self.digestBytes
        let bodyBytes = bytes.integer(at: 64, as: UInt64.self)
        guard bodyBytes <= UInt64(FormatLimit.checkpointPlaintextBytesMax) else {
            throw FormatError(
                .malformed,
                "the checkpoint declares \(bodyBytes) bytes; the limit is "
                    + "\(FormatLimit.checkpointPlaintextBytesMax)")
        }
        var body: [UInt8] = []
        var decompressor = BlockDecompressor()
        var offset = Self.headerBytes
        while offset < end {
            let header = try FrameHeader(bytes, at: offset)
            guard header.contentBytes != nil else {
                throw FormatError(.malformed, "a frame of the checkpoint declares no content size")
            }
            offset += header.encodedBytes
            try decompressor.readFrame(header, of: bytes, at: &offset, end: end)
            guard UInt64(body.count + decompressor.plaintextBytes) <= bodyBytes else {
                throw FormatError(.malformed, "the checkpoint's content exceeds its declared size")
            }
            if body.isEmpty {
                body = decompressor.extractPlaintext()
                body.reserveCapacity(Int(bodyBytes))
            } else {
                body.append(
                    contentsOf: decompressor.storage.span.bytes.extracting(
                        0..<decompressor.plaintextBytes))
            }
        }
        guard UInt64(body.count) == bodyBytes else {
            throw FormatError(
                .malformed, "the checkpoint's content is shorter than its declared size")
        }
        logID = bytes.integer(at: 16, as: UInt128.self).byteSwapped
        position = Position(bytes.integer(at: 32))
        lastID = bytes.integer(at: 40, as: UInt128.self).byteSwapped
        createdAt = bytes.integer(at: 56)
        guard position.rawValue <= FormatLimit.positionMax else {
            throw FormatError(
                .malformed, "the checkpoint names position \(position), above the greatest")
        }
        var reader = ByteReader(body)
        sealed = try Self.sealed(&reader)
        live = try Self.live(&reader, from: sealed.last?.upperBound.next ?? Position(1))
        states = try Self.states(&reader, through: position)
        guard reader.isAtEnd else {
            throw FormatError(.malformed, "bytes follow the checkpoint's last state")
        }
    }

    private static func sealed(
        _ reader: inout ByteReader
    ) throws(FormatError) -> [ClosedRange<Position>] {
        var sealed: [ClosedRange<Position>] = []
        var next = Position(1)
        let count = try reader.uint32()
        for _ in 0..<count {
            let base = Position(try reader.uint64())
            let through = Position(try reader.uint64())
            guard base == next, through >= base, through.rawValue <= FormatLimit.positionMax
            else {
                throw FormatError(.malformed, "the checkpoint's segments are not contiguous")
            }
            sealed.append(base...through)
            next = through.next
        }
        return sealed
    }

    private static func live(
        _ reader: inout ByteReader, from next: Position
    ) throws(FormatError) -> LiveSnapshot? {
        guard try reader.uint8() != 0 else { return nil }
        let base = Position(try reader.uint64())
        let dataEnd = try reader.uint64()
        let idIndexBytes = try reader.uint64()
        let idIndexDigest = try reader.uint64()
        let length = Int(try reader.uint32())
        let footerBytes = try reader.bytes(length)
        let footer = try SegmentFooter(footerBytes.span.bytes)
        guard base == next, dataEnd <= UInt64(FormatLimit.segmentBytesMax),
            footer.lines.map({ $0.lowerBound == base }) ?? true, !footer.isCompacted,
            footer.frames.isEmpty == (footer.lines == nil), footer.idIndex.isEmpty,
            idIndexBytes <= UInt64(FormatLimit.footerBytesMax)
        else { throw FormatError(.malformed, "the live segment does not follow the sealed ones") }
        return LiveSnapshot(
            base: base, dataEnd: Int(dataEnd), footer: footer, idIndexBytes: Int(idIndexBytes),
            idIndexDigest: idIndexDigest)
    }

    private static func states(
        _ reader: inout ByteReader, through last: Position
    ) throws(FormatError) -> [StoredState] {
        var states: [StoredState] = []
        let count = try reader.uint32()
        for _ in 0..<count {
            let nameBytes = Int(try reader.uint16())
            let nameText = try reader.bytes(nameBytes)
            guard let name = String(validating: nameText, as: UTF8.self) else {
                throw FormatError(.malformed, "a view's name is not UTF-8")
            }
            let version = try reader.uint32()
            let types = try reader.uint64()
            let position = Position(try reader.uint64())
            let length = try reader.uint64()
            let hash = try reader.uint64()
            guard length <= UInt64(FormatLimit.checkpointPlaintextBytesMax), position <= last else {
                throw FormatError(
                    .malformed, "the state \(name) has an impossible size or position")
            }
            let state = StoredState(
                name: name, version: version, types: types, position: position,
                bytes: try reader.bytes(Int(length)))
            guard state.hash == hash else {
                throw FormatError(.checksum, "the hash of the state \(name) does not match")
            }
            states.append(state)
        }
        return states
    }
}

extension StoredState {
    /// The XXH64 of the state's bytes. Equal states have equal hashes.
    package var hash: UInt64 { XXH64.hash(bytes.span.bytes) }

    /// The size of `fields` without the name.
    fileprivate static let fieldBytes = 38

    /// The fields of a state in a checkpoint, which precede its bytes.
    fileprivate var fields: [UInt8] {
        var fields: [UInt8] = []
        fields.append(littleEndian: UInt16(name.utf8.count))
        fields += Array(name.utf8)
        fields.append(littleEndian: version)
        fields.append(littleEndian: types)
        fields.append(littleEndian: position.rawValue)
        fields.append(littleEndian: UInt64(bytes.count))
        fields.append(littleEndian: hash)
        return fields
    }
}

/// Compresses content piece by piece, so that it is never in memory as a whole. As a whole, 300,000 unsettled
/// events take 70 MiB more while a log is filled. Each frame but the last has
/// `WriterSizes.commitPlaintextBytesMax` bytes.
private struct FramedContent {
    private(set) var frames: [UInt8] = []
    /// The content of the next frame so far.
    private var piece: [UInt8] = []

    mutating func append(_ content: RawSpan) {
        var offset = 0
        while offset < content.byteCount {
            let remaining = WriterSizes.commitPlaintextBytesMax - piece.count
            let end = min(offset + remaining, content.byteCount)
            piece.append(contentsOf: content.extracting(offset..<end))
            offset = end
            if piece.count == WriterSizes.commitPlaintextBytesMax { finish() }
        }
    }

    /// Compresses the remaining content.
    mutating func finish() {
        guard !piece.isEmpty else { return }
        var content: [UInt8] = []
        swap(&content, &piece)
        BigCommit.append(content.span.bytes, to: &frames)
        frames.append(littleEndian: UInt32(0))
        content.removeAll(keepingCapacity: true)
        piece = content
    }
}

extension BlockDecompressor {
    /// Decodes the blocks and the end mark of a frame whose header has been read.
    fileprivate mutating func readFrame(
        _ header: FrameHeader, of bytes: RawSpan, at offset: inout Int, end: Int
    ) throws(FormatError) {
        begin(header)
        while true {
            guard offset <= end - 4 else {
                throw FormatError(.truncated, "the checkpoint ends inside a frame")
            }
            guard let block = try BlockHeader.read(bytes.integer(at: offset)) else {
                offset += FrameHeader.endMarkBytes
                break
            }
            guard offset <= end - block.blockBytes else {
                throw FormatError(.truncated, "the checkpoint ends inside a block")
            }
            _ = try append(block, at: offset, of: bytes)
            offset += block.blockBytes
        }
        guard plaintextBytes == header.contentBytes else {
            throw FormatError(
                .malformed, "a frame of the checkpoint differs from its declared size")
        }
    }
}

/// A bounds-checked reader of numbers and bytes from an array.
private struct ByteReader {
    private let source: [UInt8]
    private var offset = 0

    init(_ source: [UInt8]) { self.source = source }

    var isAtEnd: Bool { offset == source.count }

    mutating func uint8() throws(FormatError) -> UInt8 {
        try advance(1)
        return source[offset - 1]
    }

    mutating func uint16() throws(FormatError) -> UInt16 {
        try advance(2)
        return source.span.bytes.integer(at: offset - 2)
    }

    mutating func uint32() throws(FormatError) -> UInt32 {
        try advance(4)
        return source.span.bytes.integer(at: offset - 4)
    }

    mutating func uint64() throws(FormatError) -> UInt64 {
        try advance(8)
        return source.span.bytes.integer(at: offset - 8)
    }

    mutating func bytes(_ count: Int) throws(FormatError) -> [UInt8] {
        try advance(count)
        return Array(source[offset - count..<offset])
    }

    private mutating func advance(_ count: Int) throws(FormatError) {
        guard source.count - offset >= count else {
            throw FormatError(.truncated, "the checkpoint's content ends inside a field")
        }
        offset += count
    }
}

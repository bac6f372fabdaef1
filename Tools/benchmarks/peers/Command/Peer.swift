// What the benchmark asks of a database: the same events with the same durability as Daybook, and a
// unique index on the id. RocksDBPeer and LMDBPeer do it; PeerWork times them.

/// A database of events, in two maps: position → line, id → position.
protocol Peer: Sendable {
    /// Opens it in a folder, or creates it there.
    init(in folder: String) throws(PeerFailure)

    /// Records events under the next positions, all or none. On return they are on the disk. An id
    /// that is there already is an error.
    func append(_ events: ArraySlice<PeerEvent>) throws(PeerFailure)

    /// Brings what was loaded into the order that reads are best in.
    func settle() throws(PeerFailure)

    /// Every line in the order of positions.
    func forEachLine(_ body: (UnsafeRawBufferPointer) -> Void) throws(PeerFailure)
}

/// A database that says no.
struct PeerFailure: Error, CustomStringConvertible {
    let description: String
    init(_ description: String) { self.description = description }
}

extension UInt64 {
    /// As a key that sorts like the number.
    var key: [UInt8] { withUnsafeBytes(of: bigEndian) { Array($0) } }
}

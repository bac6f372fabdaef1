// The interface of a peer database: the same events with the same durability as Daybook, and a unique index
// on the id.

/// A database of events, in two maps: position → line, id → position.
protocol Peer: Sendable {
    /// Opens or creates the database in a folder.
    init(in folder: String) throws(PeerFailure)

    /// Records events under the next positions, all or none. They are on the disk on return.
    ///
    /// - Throws: `PeerFailure`, also for a known id.
    func append(_ events: ArraySlice<PeerEvent>) throws(PeerFailure)

    /// Compacts the database for the fastest reads.
    func compact() throws(PeerFailure)

    /// Calls a closure with every line, in the order of positions.
    func forEachLine(_ body: (UnsafeRawBufferPointer) -> Void) throws(PeerFailure)
}

/// A failure of a database.
struct PeerFailure: Error, CustomStringConvertible {
    let description: String
    init(_ description: String) { self.description = description }
}

extension UInt64 {
    /// The number as a key that sorts like it.
    var key: [UInt8] { withUnsafeBytes(of: bigEndian) { Array($0) } }
}

// LMDB with its defaults: a tree in a mapped file, each transaction synced, one writer at a time.

import CLMDB
import Foundation
import Synchronization

final class LMDBPeer: Peer {
    private nonisolated(unsafe) let environment: OpaquePointer
    private let lines: MDB_dbi
    private let ids: MDB_dbi
    /// The last position. Accessed only in write transactions, of which there is one at a time.
    private let last = Atomic<UInt64>(0)

    /// The limit on the size of the file. Reserves addresses, not memory.
    private static let bytesMax = 64 << 30

    init(in folder: String) throws(PeerFailure) {
        var opened: OpaquePointer?
        try Self.check(mdb_env_create(&opened))
        guard let opened else { throw PeerFailure("cannot open LMDB") }
        environment = opened
        try Self.check(mdb_env_set_mapsize(opened, Self.bytesMax))
        try Self.check(mdb_env_set_maxdbs(opened, 2))
        try Self.check(mdb_env_open(opened, folder, 0, 0o600))
        var (lines, ids) = (MDB_dbi(), MDB_dbi())
        try Self.transaction(opened) { transaction throws(PeerFailure) in
            try Self.check(mdb_dbi_open(transaction, "lines", UInt32(MDB_CREATE), &lines))
            try Self.check(mdb_dbi_open(transaction, "ids", UInt32(MDB_CREATE), &ids))
        }
        (self.lines, self.ids) = (lines, ids)
    }

    deinit { mdb_env_close(environment) }

    private static func check(_ code: Int32) throws(PeerFailure) {
        guard code == 0 else { throw PeerFailure("LMDB: \(String(cString: mdb_strerror(code)))") }
    }

    private static func transaction(
        _ environment: OpaquePointer, isReading: Bool = false,
        _ body: (OpaquePointer?) throws(PeerFailure) -> Void
    ) throws(PeerFailure) {
        var transaction: OpaquePointer?
        try check(
            mdb_txn_begin(environment, nil, isReading ? UInt32(MDB_RDONLY) : 0, &transaction))
        do throws(PeerFailure) {
            try body(transaction)
        } catch {
            mdb_txn_abort(transaction)
            throw error
        }
        try check(mdb_txn_commit(transaction))
    }

    func append(_ events: ArraySlice<PeerEvent>) throws(PeerFailure) {
        try Self.transaction(environment) { transaction throws(PeerFailure) in
            for event in events {
                let position = last.add(1, ordering: .relaxed).newValue.key
                try Self.put(event.id, position, in: ids, transaction)
                try Self.put(position, event.line, in: lines, transaction)
            }
        }
    }

    private static func put(
        _ key: [UInt8], _ value: [UInt8], in map: MDB_dbi, _ transaction: OpaquePointer?
    ) throws(PeerFailure) {
        // LMDB takes mutable pointers, although it does not change the bytes.
        var (key, value) = (key, value)
        let code = key.withUnsafeMutableBytes { key in
            value.withUnsafeMutableBytes { value in
                var (name, content) = (
                    MDB_val(mv_size: key.count, mv_data: key.baseAddress),
                    MDB_val(mv_size: value.count, mv_data: value.baseAddress)
                )
                return mdb_put(transaction, map, &name, &content, UInt32(MDB_NOOVERWRITE))
            }
        }
        try check(code)
    }

    /// Does nothing: a B-tree is always sorted.
    func compact() {}

    func forEachLine(_ body: (UnsafeRawBufferPointer) -> Void) throws(PeerFailure) {
        try Self.transaction(environment, isReading: true) { transaction throws(PeerFailure) in
            var cursor: OpaquePointer?
            try Self.check(mdb_cursor_open(transaction, lines, &cursor))
            defer { mdb_cursor_close(cursor) }
            var (key, value) = (MDB_val(), MDB_val())
            var code = mdb_cursor_get(cursor, &key, &value, MDB_FIRST)
            while code == 0 {
                body(UnsafeRawBufferPointer(start: value.mv_data, count: value.mv_size))
                code = mdb_cursor_get(cursor, &key, &value, MDB_NEXT)
            }
            guard code == MDB_NOTFOUND else { return try Self.check(code) }
        }
    }
}

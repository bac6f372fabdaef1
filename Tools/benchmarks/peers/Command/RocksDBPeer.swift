// RocksDB through its C interface, with its defaults: a WAL and sorted files, each write synced, group
// commit for concurrent writers.

import CRocksDB
import Synchronization

final class RocksDBPeer: Peer {
    private nonisolated(unsafe) let database: OpaquePointer
    private nonisolated(unsafe) let writing: OpaquePointer
    private nonisolated(unsafe) let reading: OpaquePointer
    private let last = Atomic<UInt64>(0)

    /// The first byte of the keys. Lines sort before ids.
    private static let (lines, ids) = (UInt8(ascii: "e"), UInt8(ascii: "i"))

    init(in folder: String) throws(PeerFailure) {
        let options = rocksdb_options_create()
        defer { rocksdb_options_destroy(options) }
        rocksdb_options_set_create_if_missing(options, 1)
        let opened = try Self.checked { rocksdb_open(options, folder, &$0) }
        guard let opened, let write = rocksdb_writeoptions_create(),
            let read = rocksdb_readoptions_create()
        else { throw PeerFailure("cannot open RocksDB") }
        (database, writing, reading) = (opened, write, read)
        rocksdb_writeoptions_set_sync(writing, 1)
    }

    deinit {
        rocksdb_writeoptions_destroy(writing)
        rocksdb_readoptions_destroy(reading)
        rocksdb_close(database)
    }

    /// Calls a function that reports errors as text.
    private static func checked<Result>(
        _ body: (inout UnsafeMutablePointer<CChar>?) -> Result
    ) throws(PeerFailure) -> Result {
        var error: UnsafeMutablePointer<CChar>?
        let result = body(&error)
        guard let error else { return result }
        defer { rocksdb_free(error) }
        throw PeerFailure("RocksDB: \(String(cString: error))")
    }

    func append(_ events: ArraySlice<PeerEvent>) throws(PeerFailure) {
        let batch = rocksdb_writebatch_create()
        defer { rocksdb_writebatch_destroy(batch) }
        for event in events {
            let id = [Self.ids] + event.id
            let known = try Self.checked {
                rocksdb_get_pinned(database, reading, id.chars, id.count, &$0)
            }
            guard known == nil else {
                rocksdb_pinnableslice_destroy(known)
                throw PeerFailure("RocksDB has the id already")
            }
            let position = last.add(1, ordering: .relaxed).newValue.key
            let key = [Self.lines] + position
            put(key, event.line, in: batch)
            put(id, position, in: batch)
        }
        try Self.checked { rocksdb_write(database, writing, batch, &$0) }
    }

    private func put(_ key: [UInt8], _ value: [UInt8], in batch: OpaquePointer?) {
        key.withUnsafeBytes { key in
            value.withUnsafeBytes { value in
                rocksdb_writebatch_put(
                    batch, key.baseAddress?.assumingMemoryBound(to: CChar.self), key.count,
                    value.baseAddress?.assumingMemoryBound(to: CChar.self), value.count)
            }
        }
    }

    func compact() throws(PeerFailure) { rocksdb_compact_range(database, nil, 0, nil, 0) }

    func forEachLine(_ body: (UnsafeRawBufferPointer) -> Void) throws(PeerFailure) {
        let iterator = rocksdb_create_iterator(database, reading)
        defer { rocksdb_iter_destroy(iterator) }
        rocksdb_iter_seek_to_first(iterator)
        while rocksdb_iter_valid(iterator) != 0 {
            var count = 0
            let key = rocksdb_iter_key(iterator, &count)
            guard let first = key?.pointee, UInt8(bitPattern: first) == Self.lines else { break }
            let value = rocksdb_iter_value(iterator, &count)
            body(UnsafeRawBufferPointer(start: value, count: count))
            rocksdb_iter_next(iterator)
        }
        try Self.checked { rocksdb_iter_get_error(iterator, &$0) }
    }
}

extension [UInt8] {
    /// The bytes as C characters.
    fileprivate var chars: [CChar] { map { CChar(bitPattern: $0) } }
}

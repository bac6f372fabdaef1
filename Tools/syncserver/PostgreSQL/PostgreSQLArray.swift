// Arrays as PostgreSQL's binary format encodes them, so that neither side writes or parses text: as
// JSON, a batch was escaped here and taken apart in the database (Spec/decisions/0057-intake-of-the-server.md). The
// format is that of array_recv in PostgreSQL's source, src/backend/utils/adt/arrayfuncs.c.

import Foundation

/// An array with one dimension in PostgreSQL's binary format.
struct PostgreSQLArray {
    /// The encoded array.
    private(set) var bytes: [UInt8] = []

    /// The object identifiers of the types of elements, from PostgreSQL's pg_type.dat.
    private enum ElementType: UInt32 {
        case boolean = 16
        case bigint = 20
        case text = 25
        case uuid = 2950
    }

    /// An array of `uuid`; nil is NULL.
    init(uuids: [UUID?]) {
        self.init(.uuid, uuids, bytesEach: 16) { bytes, id in
            withUnsafeBytes(of: id.uuid) { bytes.append(contentsOf: $0) }
        }
    }

    /// An array of `text` from UTF-8 without U+0000; nil is NULL.
    init(texts: [[UInt8]?]) {
        let total = texts.reduce(0) { $0 + ($1?.count ?? 0) }
        self.init(.text, texts, bytesEach: total / max(1, texts.count) + 1) { $0 += $1 }
    }

    /// An array of `bigint`; nil is NULL.
    init(integers: [Int64?]) {
        self.init(.bigint, integers, bytesEach: 8) { bytes, number in
            withUnsafeBytes(of: number.bigEndian) { bytes.append(contentsOf: $0) }
        }
    }

    /// An array of `boolean`; nil is NULL.
    init(booleans: [Bool?]) {
        self.init(.boolean, booleans, bytesEach: 1) { $0.append($1 ? 1 : 0) }
    }

    private init<Element>(
        _ type: ElementType, _ elements: [Element?], bytesEach: Int,
        _ encode: (inout [UInt8], Element) -> Void
    ) {
        bytes.reserveCapacity(20 + elements.count * (4 + bytesEach))
        let hasNull = elements.contains { $0 == nil }
        // Dimensions, flags and type; then the length of the dimension and the index of its first element.
        append(elements.isEmpty ? 0 : 1)
        append(hasNull ? 1 : 0)
        append(type.rawValue)
        guard !elements.isEmpty else { return }
        append(UInt32(elements.count))
        append(1)
        for element in elements {
            let start = bytes.count
            append(UInt32.max)
            guard let element else { continue }
            encode(&bytes, element)
            let count = UInt32(bytes.count - start - 4).bigEndian
            withUnsafeBytes(of: count) { bytes.replaceSubrange(start..<start + 4, with: $0) }
        }
    }

    private mutating func append(_ number: UInt32) {
        withUnsafeBytes(of: number.bigEndian) { bytes.append(contentsOf: $0) }
    }
}

// A storage in a folder of its own, and batches read as the server reads them.

import EventSourcing
import Foundation
import OfflineModel
import SyncServerStorage
import Testing

/// A database for one test; its folder goes with it.
final class StorageFixture {
    let folder: URL
    var path: String { folder.appending(path: "events.db").path }

    static let catalogue = OfflineModel.catalogue

    init() throws {
        folder = FileManager.default.temporaryDirectory.appending(path: "daybook-\(UUID())")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    }

    deinit { try? FileManager.default.removeItem(at: folder) }

    func open() throws -> SQLiteEventStorage {
        try SQLiteEventStorage(path: path, catalogue: Self.catalogue)
    }

    static func batch(_ text: String) throws -> [ReceivedEvent] {
        try BatchReader.read(
            Array(text.utf8).span.bytes, catalogue: catalogue,
            now: Timestamp(milliseconds: 1_800_000_000_000))
    }
}

extension SQLiteEventStorage {
    /// Appends events as the account `ana` or another.
    func append(_ samples: [Sample], account: String = "ana") async throws -> [Verdict] {
        try await append(lines: samples.map(\.line), account: account)
    }

    /// Appends lines.
    func append(lines: [String], account: String = "ana") async throws -> [Verdict] {
        try await append(
            StorageFixture.batch("[\(lines.joined(separator: ","))]"), account: account)
    }

    /// All lines of an order, page by page.
    func all(
        account: String = "ana", source: UUID? = nil, limit: Int = 500
    ) async throws -> [String] {
        var lines: [String] = []
        var cursor: EventCursor?
        while true {
            let page = try await page(
                account: account, source: source, after: cursor, limit: limit)
            #expect(page.lines.count <= limit)
            if page.lines.isEmpty { return lines }
            lines += page.lines.map { String(decoding: $0, as: UTF8.self) }
            cursor = page.next
        }
    }
}

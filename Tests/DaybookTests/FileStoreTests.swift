// A file store of a log without the model.

import Daybook
import DaybookTestKit
import Foundation
import Testing

private struct ScanKept: EventPayload, Codable {
    static let type = "com.example.scan.kept"
    var page: String
    var file: FileID
    var subject: String? { page }
}

private struct Scans: Projection, Codable, FileReferring {
    static let name = "scans"
    static let version = 1
    private(set) var files: StateDictionary<String, FileID> = [:]

    mutating func fold(_ event: Event) {
        guard event.type == ScanKept.type, let kept = try? event.payload(as: ScanKept.self)
        else { return }
        files[kept.page] = kept.file
    }

    func refers(to file: FileID) -> Bool { files.contains { $0.value == file } }
}

@Suite(.verifies("FILE-4", "FILE-6")) struct FileStoreTests {
    private let machine = InMemoryFileSystem()

    private func open() async throws -> (EventStore, FileStore) {
        let store = try await EventStore.open(
            at: URL(filePath: "/log"), rules: [.of(ScanKept.self)], views: [Scans.self],
            environment: LogEnvironment(fileSystem: machine))
        return (store, FileStore(store))
    }

    private func stored() throws -> Set<FileID> {
        Set(try machine.list("/log/files").compactMap(FileID.init))
    }

    @Test func `a file that a view names or a caller retains outlives a collection`() async throws {
        let (store, files) = try await open()
        let named = try await files.store([1]) { file in
            try await store.append(ScanKept(page: "1", file: file))
            return file
        }
        let retained = try await files.storeRetained([2])
        let replaced = try await files.store([3]) { $0 }
        try await store.append(ScanKept(page: "2", file: replaced))
        try await store.append(ScanKept(page: "2", file: retained))
        try await files.collect()
        #expect(try stored() == [named, retained])
        try await store.close()

        // After a restart, in a store that retains nothing.
        let (again, reopened) = try await open()
        try await reopened.collect()
        #expect(try stored() == [named, retained])
        #expect(try await reopened.read(retained) == [2])
        try await again.close()
    }

    @Test func `what was retained before the log was suspended is stored again first`()
        async throws
    {
        let (store, files) = try await open()
        let kept = try await files.storeRetained([1])
        await files.close()
        try await store.suspend()
        let (other, others) = try await open()
        try await others.collect()
        try await other.close()
        try await store.resume()
        await files.reopen()
        await #expect(throws: FileStoreError.self) { try await files.requireRetained([kept]) }
        #expect(try stored() == [])
        try await store.close()
    }
}

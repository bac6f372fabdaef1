// The cost of closing a store: with states, that of one checkpoint; without, the same for every size of the views.

import Daybook
import DaybookTestKit
import Foundation
import LogStorage
import Synchronization
import Testing

private struct Named: EventPayload, Codable {
    static let type = "com.example.named"
    var key: String
    var name: String
}

private struct Names: Projection, Codable {
    static let name = "names"
    static let version = 1
    private(set) var names: StateDictionary<String, String> = [:]

    mutating func fold(_ event: Event) {
        if let named = try? event.payload(as: Named.self) { names[named.key] = named.name }
    }
}

@Suite struct ClosingTests {
    /// The operations of closing a store with a view of so many entries.
    private static func operations(entries: Int, storingStates: Bool) async throws -> [String] {
        let files = InMemoryFileSystem()
        let store = try await EventStore.open(
            at: URL(filePath: "/log"), rules: [.of(Named.self)], views: [Names.self],
            compaction: nil, environment: LogEnvironment(fileSystem: files))
        for start in stride(from: 0, to: entries, by: 500) {
            try await store.append(
                contentsOf: (start..<start + 500).map { Named(key: "\($0)", name: "name \($0)") })
        }
        // A checkpoint may be under way.
        try await store.checkpoint()
        try await store.append(
            contentsOf: (0..<entries / 2).map { Named(key: "\($0)", name: "new \($0)") })
        let operations = Mutex<[String]>([])
        files.failing { operation, path in
            operations.withLock { $0.append("\(operation) \(path)") }
            return nil
        }
        try await store.close(storingStates: storingStates)
        // Only what changes a file: appends may still be read back.
        return operations.withLock { $0 }.filter {
            !$0.hasPrefix("read") && !$0.hasPrefix("inspect")
        }
    }

    @Test(.verifies("CHK-3"))
    func `closing without states does the same for a small and for a large view`() async throws {
        let small = try await Self.operations(entries: 1_000, storingStates: false)
        let large = try await Self.operations(entries: 20_000, storingStates: false)
        #expect(small == large, "\(small) \(large)")
        #expect(!large.contains { $0.contains("checkpoints") })
    }

    @Test(.verifies("CHK-3"))
    func `closing with states writes one checkpoint`() async throws {
        let operations = try await Self.operations(entries: 20_000, storingStates: true)
        let renames = operations.filter { $0.hasPrefix("rename") && $0.contains("checkpoints") }
        #expect(renames.count == 1, "\(operations)")
    }
}

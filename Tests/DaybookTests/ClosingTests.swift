// The cost of closing a store: with states, that of one checkpoint; without, the same for every size of the views.

import Daybook
import DaybookTestKit
import Dispatch
import Foundation
import LogStorage
import Synchronization
import TestSupport
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

/// Stops the encoding of `Slow` at its tenth value until `end()`.
private final class EncodingPause: Sendable {
    private let (began, goOn) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
    private let count = Mutex(0)
    var values: Int { count.withLock { $0 } }

    func encode() {
        let value = count.withLock { count in
            count += 1
            return count
        }
        guard value == 10 else { return }
        began.signal()
        goOn.wait()
    }

    func beginning() async {
        await withCheckedContinuation { done in
            DispatchQueue.global().async {
                self.began.wait()
                done.resume()
            }
        }
    }

    func end() { goOn.signal() }
}

/// A view whose encoding can be paused.
private struct Slow: Projection, Codable {
    static let name = "slow"
    static let version = 1
    static let pause = Mutex<EncodingPause?>(nil)
    struct Value: Codable {
        var name: String

        func encode(to encoder: any Encoder) throws {
            Slow.pause.withLock { $0 }?.encode()
            var container = encoder.singleValueContainer()
            try container.encode(name)
        }

        init(_ name: String) { self.name = name }
        init(from decoder: any Decoder) throws {
            name = try decoder.singleValueContainer().decode(String.self)
        }
    }
    private(set) var values: [Value] = []

    mutating func fold(_ event: Event) {
        if let named = try? event.payload(as: Named.self) { values.append(Value(named.name)) }
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

    /// Leaves a store while a checkpoint encodes the tenth of a view's 1,000 values.
    ///
    /// - Returns: the number of encoded values.
    private static func encodedValues(
        _ leave: @escaping @Sendable (EventStore) async throws -> Void, _ store: EventStore
    ) async throws -> Int {
        let pause = EncodingPause()
        Slow.pause.withLock { $0 = pause }
        defer { Slow.pause.withLock { $0 = nil } }
        let checkpoint = Task { try await store.checkpoint() }
        await pause.beginning()
        let leaving = Task { try await leave(store) }
        try await eventually("refused", is: true) {
            do { try await store.checkOpen() } catch { return true }
            return false
        }
        pause.end()
        try await leaving.value
        await #expect(throws: (any Error).self) { try await checkpoint.value }
        return pause.values
    }

    @Test(.verifies("CHK-3"))
    func `suspending and closing without states leave a view in the middle of its encoding`()
        async throws
    {
        let store = try await EventStore.inMemory(rules: [.of(Named.self)], views: [Slow.self])
        try await store.append(
            contentsOf: (0..<1_000).map { Named(key: "\($0)", name: "name \($0)") })
        let atSuspension = try await Self.encodedValues(
            { try await $0.suspend(storingStates: false) }, store)
        #expect(atSuspension == 10)
        try await store.resume()
        let atClosing = try await Self.encodedValues(
            { try await $0.close(storingStates: false) }, store)
        #expect(atClosing == 10)
    }

    @Test(.verifies("CHK-3"))
    func `closing with states writes one checkpoint`() async throws {
        let operations = try await Self.operations(entries: 20_000, storingStates: true)
        let renames = operations.filter { $0.hasPrefix("rename") && $0.contains("checkpoints") }
        #expect(renames.count == 1, "\(operations)")
    }
}

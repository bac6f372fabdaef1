// The power fails before every operation of a write, or the operation fails: the file has the old
// or the new content, and later writes succeed.

import DaybookSecrets
import DaybookTestKit
import Foundation
import LogStorage
import Replay
import TestSupport
import Testing

@Suite struct SealedFilePowerCutTests {
    private static let file = URL(filePath: "/keep/secrets")

    private static func store(_ files: SimulatedFileSystem) throws -> SealedFileSecretStore {
        try SealedFileSecretStore(
            file: file, key: SealedFileTests.key, fileSystem: files)
    }

    private static func machine() throws -> SimulatedFileSystem {
        let files = SimulatedFileSystem()
        try files.createDirectory("/keep")
        return files
    }

    /// A change, and the file's content before and after.
    private enum Change: CaseIterable {
        case first, second, delete, deleteAll

        var before: [UInt8]? { self == .first ? nil : [1, 2, 3] }
        var after: [UInt8]? {
            switch self {
            case .first: [1, 2, 3]
            case .second: [UInt8](repeating: 4, count: 1_500)
            case .delete, .deleteAll: nil
            }
        }

        func prepare(_ store: SealedFileSecretStore) async throws {
            if let before { try await store.write(before, for: "token") }
            if self == .delete { try await store.write([9], for: "other") }
        }

        func make(_ store: SealedFileSecretStore) async throws {
            switch self {
            case .deleteAll: try await store.deleteAll()
            case .delete: try await store.delete("token")
            default: try await store.write(after ?? [], for: "token")
            }
        }
    }

    @Test(.verifies("SEC-9"))
    func `a power cut at any operation leaves the old content or the new`() async throws {
        for change in Change.allCases {
            let files = try Self.machine()
            let store = try Self.store(files)
            try await change.prepare(store)
            files.record()
            try await change.make(store)
            let points = files.crashPoints
            #expect(points.count >= 3)
            var found: Set<[UInt8]?> = []
            for (index, point) in points.enumerated() {
                var machines = [point.afterKill()]
                point.forEachState(in: .init(combinationsMax: 512)) { machine, _ in
                    machines.append(machine)
                }
                for machine in machines {
                    let after = try Self.store(machine)
                    let value = try await after.read("token")
                    found.insert(value)
                    try #require(
                        value == change.before || value == change.after,
                        "\(change), before \(point.next)")
                    if index == points.count - 1 { try #require(value == change.after) }
                    if change == .delete { try #require(try await after.read("other") == [9]) }
                    // Later writes succeed, and no other file is left.
                    try await after.write([7], for: "token")
                    try #require(try await after.read("token") == [7])
                    try #require(try machine.list("/keep") == ["secrets", "secrets.lock"])
                    try #require(machine.openFiles.isEmpty)
                }
            }
            #expect(found == [change.before, change.after])
        }
    }

    @Test(.verifies("SEC-2", "SEC-9"))
    func `a call that fails leaves the old content, and the next write succeeds`() async throws {
        for fault in SimulatedFault.all {
            for call in 0..<40 {
                let files = try Self.machine()
                let store = try Self.store(files)
                try await store.write([1], for: "token")
                let begun = files.calls
                files.fail(call: begun + call, fault)
                var failure: SecretStoreError?
                do { try await store.write([2], for: "token") } catch { failure = error }
                guard files.faultsHit > 0 else {
                    // Every call of a write was tried.
                    #expect(call > 8)
                    #expect(failure == nil)
                    break
                }
                files.endFaults()
                let value = try await store.read("token")
                switch failure?.code {
                case nil: #expect(value == [2])
                case .indeterminate: #expect(value == [2])
                default: #expect(value == [1], "call \(call), \(fault)")
                }
                try await store.write([3], for: "token")
                #expect(try await store.read("token") == [3])
                #expect(try files.list("/keep") == ["secrets", "secrets.lock"])
                #expect(files.openFiles.isEmpty)
            }
        }
    }
}

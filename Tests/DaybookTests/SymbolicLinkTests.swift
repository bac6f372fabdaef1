// Nothing is written through a symbolic link in place of a folder of the log.

import DaybookTestKit
import Foundation
import TestSupport
import Testing

@testable import DaybookOffline

@Suite struct SymbolicLinkTests {
    @Test(.verifies("CHK-1", "FILE-1"))
    func `a folder of the log that is a symbolic link is not written through`() async throws {
        let folder = try TemporaryFolder()
        defer { folder.remove() }
        let store = try await OfflineStore.open(at: folder.appending("log"))
        try await store.cities.save("lisbon", by: "ada")
        let elsewhere = folder.appending("elsewhere")
        try FileManager.default.createDirectory(
            at: elsewhere, withIntermediateDirectories: false)
        for name in ["checkpoints", "files"] {
            try FileManager.default.createSymbolicLink(
                at: folder.appending("log/\(name)"), withDestinationURL: elsewhere)
        }
        await #expect {
            try await store.events.checkpoint()
        } throws: { "\($0)".contains("symbolic link") }
        await #expect {
            try await store.files.storeRetained([1])
        } throws: { "\($0)".contains("symbolic link") }
        try await store.close()
        #expect(try folder.names(in: "elsewhere") == [])
    }
}

// A server whose database is on a disk that cannot be written. Spec/operations/operating.md, OPS-28.

import DaybookTestKit
import Foundation
import TestSupport
import Testing

@Suite(.enabled(if: SmallDisk.isPermitted, "mounting a disk needs root on Linux"))
struct ReadOnlyDiskTests {
    /// The state in which the last server has left the files.
    enum End: CaseIterable {
        case clean
        case killed
        /// Killed, and its files were copied without the index of the write-ahead log.
        case killedWithoutIndex
    }

    @Test(.verifies("OPS-28"), arguments: End.allCases)
    func `a server on a read-only disk serves pages, refuses batches, and says so at the start`(
        end: End
    ) async throws {
        let disk = try SmallDisk(megabytes: 16)
        let database = disk.folder.appending(path: "events.db").path
        let samples = Sample.cities(40)
        var server = try ServerProcess(database: database)
        try await ServerClient(base: server.base).append(samples)
        if end == .clean { #expect(server.stop() == 0) } else { server.kill() }
        if end == .killedWithoutIndex {
            try FileManager.default.removeItem(atPath: database + "-shm")
        }
        try disk.setWritable(false)
        let log = try TemporaryFolder()
        let messages = log.appending("messages")
        try Data().write(to: messages)
        server = try ServerProcess(
            database: database, messages: FileHandle(forWritingTo: messages))
        let client = ServerClient(base: server.base)
        #expect(try await client.allIDs("/v1/events?limit=7") == samples.map(\.id.text))
        let stream = try EventStreamReader(server.base)
        #expect(try stream.events(40).map(\.id) == samples.map(\.id.text))
        let refusal = try await client.post(Sample.cities(1, from: 41).body)
        #expect(refusal.status == 503)
        #expect(refusal.errorCode == "unavailable")
        #expect(refusal.header("Retry-After") != nil)
        #expect(try await client.get("/healthz").status == 200)
        let ready = try await client.get("/readyz")
        #expect(ready.status == 503)
        #expect(
            try String(contentsOf: messages, encoding: .utf8)
                .contains("can only be read (Read-only file system)"))

        try disk.setWritable(true)
        try await client.append(Sample.cities(1, from: 41))
        #expect(try await client.allIDs().count == 41)
        #expect(server.stop() == 0)
    }

    @Test(.verifies("OPS-28"))
    func `a server whose database is missing on a read-only disk does not start`() throws {
        let disk = try SmallDisk(megabytes: 16)
        try disk.setWritable(false)
        let database = disk.folder.appending(path: "events.db").path
        let end = try ServerProcess.run(["--port", "0", "--database", "sqlite:\(database)"])
        #expect(end.status == 74)
        #expect(end.message.contains("Read-only file system"))
    }
}

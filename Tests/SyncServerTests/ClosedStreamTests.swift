// Commands of the server whose standard streams are closed or full. Spec/operations/operating.md, OPS-24.

import DaybookTestKit
import Foundation
import TestSupport
import Testing

@Suite struct ClosedStreamTests {
    let fixture: StorageFixture

    init() throws { fixture = try StorageFixture() }

    /// Runs a shell command in which `$server` is the server and `$database` its database.
    private func run(_ line: String) throws -> (status: Int32, message: String) {
        try ServerProcess.run(
            ["-c", line], executable: URL(filePath: "/bin/sh"),
            environment: [
                "server": ServerProcess.binary.path, "database": "sqlite:\(fixture.path)",
            ])
    }

    @Test(
        .verifies("OPS-24"),
        arguments: ["token ana", "migrate --database $database"], [">&-", ">/dev/full", "<&- >&-"])
    func `a command whose output cannot be written ends with 74`(
        command: String, redirection: String
    ) throws {
        let end = try run("\"$server\" \(command) \(redirection)")
        #expect(end.status == 74)
        #expect(end.message.hasPrefix("syncserver: standard output: "))
        #expect(try run("\"$server\" migrate --database $database").status == 0)
    }

    @Test(.verifies("OPS-24"), arguments: ["2>&-", "2>/dev/full", "<&- >&- 2>&-"])
    func `a command whose message cannot be written still ends with its code`(redirection: String)
        throws
    {
        try Data("no database".utf8).write(to: URL(filePath: fixture.path))
        for command in ["serve --port 0", "migrate", "erase --account ana"] {
            let end = try run("\"$server\" \(command) --database $database \(redirection)")
            #expect(end.status == 65, "\(command)")
        }
    }

    @Test(.verifies("OPS-24"), arguments: [">/dev/full", ">&-", "<&- >&- 2>&-", "2>/dev/full"])
    func `a server whose streams are closed or full continues to serve`(redirection: String) throws
    {
        let port = try TCPListener.freePort(in: 20_000..<30_000)
        let serve = "\"$server\" serve --port \(port) --database $database \(redirection)"
        // Stopped as soon as it answers.
        let probe = "(exec 3<>/dev/tcp/127.0.0.1/\(port)) 2>/dev/null"
        let end = try run(
            "\(serve) & pid=$!; until bash -c '\(probe)'; do sleep 0.1; done; "
                + "kill -TERM $pid; wait $pid")
        #expect(end.status == 0)
    }
}

// The real syncserver as a child process that WireHistory starts and kills repeatedly, always with the same
// port and the same database.

import DaybookTestKit
import Foundation

/// A server that can be killed.
actor WireServer {
    /// The port of all its processes.
    let port: UInt16
    private let binary: URL
    private let database: String
    private var process: Process?
    private(set) var kills = 0

    /// Chooses a port. `start()` starts the server.
    ///
    /// - Parameters:
    ///   - binary: the built `syncserver`.
    ///   - database: the path of its database.
    init(binary: URL, database: String) throws {
        self.binary = binary
        self.database = database
        // Not a port of the system's choice: a connection of another process could get it while the server is
        // down.
        port = try TCPListener.freePort(in: 20_000..<30_000)
    }

    /// Starts the server, and waits until it listens.
    func start() async throws {
        for attempt in 1...Self.attemptsMax {
            let process = Process()
            process.executableURL = binary
            process.arguments = ["--port", "\(port)", "--database", "sqlite:\(database)"]
            let output = Pipe()
            process.standardOutput = output
            process.standardError = FileHandle.nullDevice
            try process.run()
            // It prints one line when it is ready; if it cannot listen, it exits.
            if !output.fileHandleForReading.availableData.isEmpty {
                self.process = process
                return
            }
            while process.isRunning { try await Task.sleep(for: .milliseconds(5)) }
            guard attempt < Self.attemptsMax else { break }
            try await Task.sleep(for: .milliseconds(50))
        }
        throw WireFailure("\(binary.path) does not start at port \(port)")
    }

    /// Kills the server with SIGKILL, and counts the kill.
    func kill() async {
        guard let process else { return }
        kills += 1
        await end(process)
    }

    /// Kills the server at the end of the history, without counting it.
    func stop() async {
        if let process { await end(process) }
    }

    private func end(_ process: Process) async {
        self.process = nil
        Foundation.kill(process.processIdentifier, SIGKILL)
        while process.isRunning { try? await Task.sleep(for: .milliseconds(2)) }
    }

    private static let attemptsMax = 40
}

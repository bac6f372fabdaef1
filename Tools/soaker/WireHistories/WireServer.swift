// The real syncserver as a child process: started, killed, started again at the same port on the same
// database. Part of WireHistory.

import DaybookTestKit
import Foundation

/// A server that can be killed.
actor WireServer {
    /// Where it listens, in all its lives.
    let port: UInt16
    private let binary: URL
    private let database: String
    private var process: Process?
    private(set) var kills = 0

    /// Chooses a port; nothing runs yet.
    ///
    /// - Parameters:
    ///   - binary: the built `syncserver`.
    ///   - database: the path of its database.
    init(binary: URL, database: String) throws {
        self.binary = binary
        self.database = database
        // A port of the system's choice could be taken by somebody's connection while nobody
        // listens there.
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
            // It says one line when it is ready; if it cannot be, it ends.
            if !output.fileHandleForReading.availableData.isEmpty {
                self.process = process
                return
            }
            while process.isRunning { try await Task.sleep(for: .milliseconds(5)) }
            guard attempt < Self.attemptsMax else { break }
            try await Task.sleep(for: .milliseconds(50))
        }
        throw WireFailure("\(binary.path) does not start at the port \(port)")
    }

    /// Ends the server as a power switch does.
    func kill() async {
        guard let process else { return }
        kills += 1
        await end(process)
    }

    /// Ends the server for good.
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

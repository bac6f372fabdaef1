// Runs the built logtool as a process.

import DaybookTestKit
import Foundation
import TestSupport
import Testing

/// The result of a finished logtool.
struct Logtool {
    let status: Int32
    let output: String
    let messages: String

    /// The project's root.
    static let root = URL(filePath: #filePath).deletingLastPathComponent()
        .appending(path: "../..").standardizedFileURL

    fileprivate static var binary: URL {
        let beside = URL(filePath: CommandLine.arguments[0]).deletingLastPathComponent()
            .appending(path: "logtool")
        if FileManager.default.isExecutableFile(atPath: beside.path) { return beside }
        return root.appending(path: ".build/debug/logtool")
    }

    /// Runs logtool to its end.
    ///
    /// - Parameter fileBytesMax: the size that no file of the process may exceed, a multiple of 512; nil for no bound.
    static func run(_ arguments: [String], fileBytesMax: Int? = nil) throws -> Logtool {
        let folder = try TemporaryFolder()
        defer { folder.remove() }
        let process = Process()
        process.executableURL = binary
        process.arguments = arguments
        if let fileBytesMax {
            // Ignored, the signal is the error of the write.
            let script = "trap '' XFSZ; ulimit -f \(fileBytesMax / 512); exec \"$0\" \"$@\""
            process.executableURL = URL(filePath: "/bin/sh")
            process.arguments = ["-c", script, binary.path] + arguments
        }
        // Files, because a full pipe would block.
        let (output, messages) = (try folder.file("output"), try folder.file("messages"))
        process.standardOutput = try FileHandle(forWritingTo: output)
        process.standardError = try FileHandle(forWritingTo: messages)
        process.standardInput = FileHandle.nullDevice
        try process.runAlone()
        process.waitUntilExit()
        return Logtool(
            status: process.terminationStatus,
            output: try String(contentsOf: output, encoding: .utf8),
            messages: try String(contentsOf: messages, encoding: .utf8))
    }
}

/// A running `logtool studio`.
final class RunningStudio {
    /// The line that it has printed.
    let line: String
    let port: UInt16
    let token: String
    private let process = Process()

    /// - Parameter folder: a folder in which commands are looked for first; nil for none.
    init(_ arguments: String..., pathFirst folder: String? = nil) throws {
        if let folder {
            var environment = ProcessInfo.processInfo.environment
            environment["PATH"] = "\(folder):\(environment["PATH"] ?? "/usr/bin:/bin")"
            process.environment = environment
        }
        process.executableURL = Logtool.binary
        process.arguments = ["studio"] + arguments
        process.standardError = FileHandle.nullDevice
        process.standardInput = FileHandle.nullDevice
        let output = Pipe.betweenStarts()
        process.standardOutput = output
        try process.runAlone()
        var bytes = Data()
        while bytes.last != UInt8(ascii: "\n") {
            let part = output.fileHandleForReading.availableData
            guard !part.isEmpty else { break }
            bytes += part
        }
        line = String(decoding: bytes, as: UTF8.self)
        let pattern = #/listening on http://127\.0\.0\.1:(\d+)/\?token=([0-9a-f]{32})\n/#
        let match = try #require(line.wholeMatch(of: pattern), "\(line)")
        port = try #require(UInt16(match.1))
        token = String(match.2)
    }

    /// The reply to a GET request, with its head.
    func get(_ target: String, key: String? = nil) throws -> String {
        let socket = try connect()
        var head = "GET \(target) HTTP/1.1\r\nHost: 127.0.0.1:\(port)\r\nConnection: close\r\n"
        if let key { head += "Authorization: Bearer \(key)\r\n" }
        try socket.send("\(head)\r\n".utf8)
        return try Self.reply(from: socket)
    }

    /// Connects to the server.
    func connect() throws -> TCPSocket { try TCPSocket(to: port, stop: StopSignal()) }

    /// All that the server sends until it closes the connection.
    static func reply(from socket: TCPSocket) throws -> String {
        var reply: [UInt8] = []
        do { while true { try socket.receive(into: &reply) } } catch SocketError.ended {}
        return String(decoding: reply, as: UTF8.self)
    }

    /// Sends a signal, and returns the exit code; -1 if the signal killed the process.
    func end(with signal: Int32) -> Int32 {
        kill(process.processIdentifier, signal)
        process.waitUntilExit()
        return process.terminationReason == .exit ? process.terminationStatus : -1
    }

    deinit { if process.isRunning { _ = end(with: SIGKILL) } }
}

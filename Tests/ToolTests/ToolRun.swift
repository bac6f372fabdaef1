// Runs the built tools as processes.

import DaybookTestKit
import Foundation
import TestSupport
import Testing

/// The result of a finished tool.
struct ToolRun {
    let status: Int32
    let output: String
    let messages: String

    /// Runs logtool to its end.
    static func logtool(_ arguments: String..., input: String? = nil) throws -> ToolRun {
        try run(Tool.binary("logtool"), arguments, input: input)
    }

    /// Runs a command of logtool to its end, with additional environment variables.
    static func logtool(
        _ command: String, _ arguments: [String], environment: [String: String] = [:]
    ) throws -> ToolRun {
        try run(Tool.binary("logtool"), [command] + arguments, environment: environment)
    }

    /// Runs syncserver to its end.
    static func syncserver(_ arguments: String...) throws -> ToolRun {
        try run(Tool.binary("syncserver"), arguments)
    }

    /// Runs logtool on a terminal, and types a text each time that it prompts. The output is all that the terminal
    /// shows.
    static func logtoolOnTerminal(
        _ arguments: [String], typing texts: [String], environment: [String: String]
    ) throws -> ToolRun {
        let script = """
            import os, pty, signal, sys, termios, time
            child, terminal = pty.fork()
            if child == 0: os.execv(sys.argv[1], [sys.argv[1]] + sys.argv[3:])
            signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGALRM])
            signal.alarm(60)
            texts, shown, seen = sys.argv[2].split("|"), b"", 0
            while True:
                try: shown += os.read(terminal, 4096)
                except OSError: break
                if texts and b"> " in shown[seen:]:
                    seen = len(shown)
                    # libedit prompts before it reads keys; without libedit, lines are always read.
                    for _ in range(200):
                        if not termios.tcgetattr(terminal)[3] & termios.ICANON: break
                        time.sleep(0.01)
                    os.write(terminal, texts.pop(0).encode())
            status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
            sys.stdout.write(shown.decode())
            sys.exit(status)
            """
        return try run(
            URL(filePath: "/usr/bin/env"),
            [
                "python3", "-c", script, Tool.binary("logtool").path,
                texts.joined(separator: "|"),
            ] + arguments, environment: environment)
    }

    /// Runs a shell command.
    static func shell(_ line: String) throws -> ToolRun {
        try run(URL(filePath: "/bin/sh"), ["-c", line])
    }

    private static func run(
        _ tool: URL, _ arguments: [String], input: String? = nil,
        environment: [String: String] = [:]
    ) throws -> ToolRun {
        let folder = try TemporaryFolder()
        defer { folder.remove() }
        let process = Process()
        process.executableURL = tool
        process.arguments = arguments
        // A fixed locale, on which plots and bars depend.
        process.environment = ProcessInfo.processInfo.environment
            .merging(["LC_ALL": "C.UTF-8"]) { $1 }
            .merging(environment) { $1 }
        // Files, because a full pipe would block.
        let output = try folder.file("output")
        let messages = try folder.file("messages")
        let source = try folder.file("input", content: input ?? "")
        process.standardOutput = try FileHandle(forWritingTo: output)
        process.standardError = try FileHandle(forWritingTo: messages)
        process.standardInput = try FileHandle(forReadingFrom: source)
        try process.runAlone()
        process.waitUntilExit()
        return ToolRun(
            status: process.terminationStatus,
            output: String(decoding: try Data(contentsOf: output), as: UTF8.self),
            messages: String(decoding: try Data(contentsOf: messages), as: UTF8.self))
    }
}

/// The paths of tools and samples.
enum Tool {
    /// The project's root.
    static let root = URL(filePath: #filePath).deletingLastPathComponent()
        .appending(path: "../..").standardizedFileURL

    /// The sample journey.
    static let sample = root.appending(path: "Tools/sample/journey.ndjson").path

    /// The sample of cached content.
    static let sampleDownloads = root.appending(path: "Tools/sample/downloads.ndjson").path
    static let sampleContent = root.appending(path: "Tools/sample/content.ndjson").path

    /// The path of a built tool, in the folder of the tests.
    static func binary(_ name: String) -> URL {
        let beside = URL(filePath: CommandLine.arguments[0]).deletingLastPathComponent()
            .appending(path: name)
        if FileManager.default.isExecutableFile(atPath: beside.path) { return beside }
        return root.appending(path: ".build/debug/\(name)")
    }
}

/// A running syncserver.
final class RunningServer {
    let url: String
    private let process = Process()

    init(database: String) throws {
        process.executableURL = Tool.binary("syncserver")
        process.arguments = ["--port", "0", "--database", "sqlite:\(database)"]
        process.standardError = FileHandle.nullDevice
        let output = Pipe.betweenStarts()
        process.standardOutput = output
        try process.runAlone()
        var line = Data()
        while line.last != UInt8(ascii: "\n") {
            let part = output.fileHandleForReading.availableData
            guard !part.isEmpty else { break }
            line += part
        }
        let prefix = "listening on "
        let text = String(decoding: line, as: UTF8.self)
        try #require(text.hasPrefix(prefix))
        url = String(text.dropFirst(prefix.count).dropLast())
    }

    /// Kills the server.
    func kill() {
        Foundation.kill(process.processIdentifier, SIGKILL)
        process.waitUntilExit()
    }

    deinit { if process.isRunning { kill() } }
}

/// A `logtool import` that holds a log until it is finished.
final class RunningImport {
    private let process = Process()
    private let lines = Pipe.betweenStarts()

    /// Starts the import with one line, and waits for its acknowledgement, which proves that it holds the log.
    init(into log: String) throws {
        process.executableURL = Tool.binary("logtool")
        process.arguments = ["import", log, "-", "--ack", "--batch", "1"]
        process.standardError = FileHandle.nullDevice
        process.standardInput = lines
        let acknowledgements = Pipe.betweenStarts()
        process.standardOutput = acknowledgements
        try process.runAlone()
        let line = try String(contentsOfFile: Tool.sample, encoding: .utf8).prefix { $0 != "\n" }
        lines.fileHandleForWriting.write(Data((line + "\n").utf8))
        try #require(!acknowledgements.fileHandleForReading.availableData.isEmpty)
    }

    var processID: Int32 { process.processIdentifier }

    /// Ends the input, and returns the exit status.
    func finish() throws -> Int32 {
        try lines.fileHandleForWriting.close()
        process.waitUntilExit()
        return process.terminationStatus
    }
}

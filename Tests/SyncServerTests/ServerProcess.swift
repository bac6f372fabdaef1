// The built syncserver as a process of its own, on a free port, and requests to it.

import Foundation
import TestSupport
import Testing

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// A running server.
final class ServerProcess {
    let base: String
    private let process: Process

    /// A binary that speaks TLS, if Tools/checks/tls has built one.
    static let binaryWithTLS = ProcessInfo.processInfo.environment["DAYBOOK_TLS_SYNCSERVER"].map {
        URL(filePath: $0)
    }

    /// The binary, which is built into the folder of the tests.
    static var binary: URL {
        if let binaryWithTLS { return binaryWithTLS }
        let tests = URL(filePath: CommandLine.arguments[0]).deletingLastPathComponent()
        let beside = tests.appending(path: "syncserver")
        if FileManager.default.isExecutableFile(atPath: beside.path) { return beside }
        return URL(filePath: #filePath).deletingLastPathComponent()
            .appending(path: "../../.build/debug/syncserver").standardizedFileURL
    }

    /// Starts a server and waits until it is ready.
    ///
    /// - Parameters:
    ///   - database: a value of `--database`, or the path of a SQLite file.
    ///   - messages: the destination of its log.
    convenience init(
        database: String, messages: FileHandle = .nullDevice, _ options: String...
    ) throws {
        try self.init(database: database, messages: messages, options: options)
    }

    /// Starts a server with a list of options.
    ///
    /// - Parameter scheme: the scheme of the expected URL.
    init(
        database: String, messages: FileHandle = .nullDevice, options: [String],
        scheme: String = "http"
    ) throws {
        process = Process()
        process.executableURL = Self.binary
        let location = database.contains(":") ? database : "sqlite:\(database)"
        process.arguments = ["--port", "0", "--database", location] + options
        process.standardError = messages
        let output = Pipe.betweenStarts()
        process.standardOutput = output
        try process.runAlone()
        var line = Data()
        while line.last != UInt8(ascii: "\n") {
            let part = output.fileHandleForReading.availableData
            guard !part.isEmpty else { break }
            line += part
        }
        let text = String(decoding: line, as: UTF8.self)
        let prefix = "listening on \(scheme)://127.0.0.1:"
        try #require(text.hasPrefix(prefix))
        try #require(text.hasSuffix("\n"))
        base = String(text.dropFirst("listening on ".count).dropLast())
    }

    deinit { if process.isRunning { kill() } }

    /// Kills the server.
    func kill() {
        Foundation.kill(process.processIdentifier, SIGKILL)
        process.waitUntilExit()
    }

    /// The most memory that the server has had in use so far, in MiB.
    func peakMemory() throws -> Int {
        let status = try String(
            contentsOfFile: "/proc/\(process.processIdentifier)/status", encoding: .utf8)
        let line = try #require(status.split(separator: "\n").first { $0.hasPrefix("VmHWM:") })
        let kibibytes = try #require(line.split(whereSeparator: \.isWhitespace).dropFirst().first)
        return try #require(Int(kibibytes)) / 1_024
    }

    /// Sends the server a signal.
    func signal(_ signal: Int32) { Foundation.kill(process.processIdentifier, signal) }

    /// Sends SIGTERM without waiting for the end.
    func terminate() { process.terminate() }

    /// Sends SIGTERM and waits for the end.
    func stop() -> Int32 {
        if process.isRunning { process.terminate() }
        process.waitUntilExit()
        return process.terminationStatus
    }

    /// Runs a server or another program to its end.
    static func run(
        _ arguments: [String], executable: URL = binary, environment: [String: String] = [:]
    ) throws -> (status: Int32, message: String) {
        let process = Process()
        process.executableURL = executable
        process.arguments = arguments
        process.environment = ProcessInfo.processInfo.environment.merging(environment) { $1 }
        process.standardOutput = FileHandle.nullDevice
        let messages = Pipe.betweenStarts()
        process.standardError = messages
        try process.runAlone()
        let text = try messages.fileHandleForReading.readToEnd() ?? Data()
        process.waitUntilExit()
        return (process.terminationStatus, String(decoding: text, as: UTF8.self))
    }
}

/// A server's reply.
struct ServerReply {
    let status: Int
    let body: Data
    let header: @Sendable (String) -> String?

    var json: Any? { try? JSONSerialization.jsonObject(with: body) }
    var object: [String: Any] { json as? [String: Any] ?? [:] }
    var errorCode: String? { (object["error"] as? [String: Any])?["code"] as? String }
    var statuses: [String] {
        (object["verdicts"] as? [[String: Any]] ?? []).compactMap { $0["status"] as? String }
    }
    var ids: [String] { (json as? [[String: Any]] ?? []).compactMap { $0["id"] as? String } }
    /// The URL of the next page.
    var next: String? {
        guard let link = header("Link"), link.hasPrefix("<"),
            let end = link.range(of: ">; rel=\"next\"")
        else { return nil }
        return String(link[link.index(after: link.startIndex)..<end.lowerBound])
    }
}

/// A client of a server, usable from many tasks.
struct ServerClient: Sendable {
    let base: String
    var token: String?

    func send(
        _ method: String, _ path: String, body: Data? = nil, headers: [String: String] = [:]
    ) async throws -> ServerReply {
        let url = try #require(URL(string: base + path))
        var request = URLRequest(url: url)
        request.httpMethod = method
        request.httpBody = body
        if let token { request.setValue("Bearer \(token)", forHTTPHeaderField: "Authorization") }
        for (name, value) in headers { request.setValue(value, forHTTPHeaderField: name) }
        // In a task that is never cancelled: URLSession on Linux deadlocks if a request is cancelled while it
        // ends.
        let (data, response) = try await Task { [request] in
            try await URLSession.shared.data(for: request)
        }.value
        let reply = try #require(response as? HTTPURLResponse)
        return ServerReply(status: reply.statusCode, body: data) {
            reply.value(forHTTPHeaderField: $0)
        }
    }

    func post(
        _ body: Data, type: String = "application/cloudevents-batch+json"
    ) async throws -> ServerReply {
        try await send("POST", "/v1/events", body: body, headers: ["Content-Type": type])
    }

    func get(_ path: String) async throws -> ServerReply { try await send("GET", path) }

    /// The value of a metric, by its name with its labels; nil if the server does not report it.
    func metric(_ name: String) async throws -> Int? {
        let text = String(decoding: try await get("/metrics").body, as: UTF8.self)
        let line = text.split(separator: "\n").first { $0.hasPrefix("\(name) ") }
        return line.flatMap { Int($0.dropFirst(name.count + 1)) }
    }

    /// The ids of all events of an order, page by page.
    func allIDs(_ path: String = "/v1/events") async throws -> [String] {
        var ids: [String] = []
        var next = path
        while true {
            let page = try await get(next)
            #expect(page.status == 200)
            if page.ids.isEmpty { return ids }
            ids += page.ids
            next = try #require(page.next)
        }
    }
}

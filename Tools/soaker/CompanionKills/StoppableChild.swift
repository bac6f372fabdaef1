// A process that is stopped and killed, what it has acknowledged, and the locks that it holds by the kernel's list.

import Foundation

/// One process, started again after each kill.
final class StoppableChild {
    let isOwner: Bool
    private let command: URL
    private let arguments: [String]
    private var process = Process()
    private var pipe = Pipe()
    private var text = ""
    private var lastLine = ContinuousClock.now
    /// True if the process was stopped between its appends, as its last line says.
    private(set) var isIdle = true
    private(set) var isStopped = false
    private var isKilled = false
    private(set) var stoppedUntil = ContinuousClock.now
    /// The locks that the process held when it was stopped.
    private(set) var locks = 0
    /// The last acknowledged number of each key.
    private(set) var acknowledged: [String: Int] = [:]

    init(_ command: URL, _ arguments: [String], isOwner: Bool) {
        (self.command, self.arguments, self.isOwner) = (command, arguments, isOwner)
    }

    var name: String { "\(arguments[0]) \(arguments.last ?? "") (\(process.processIdentifier))" }
    /// The time since the last line.
    var silence: Duration { .now - lastLine }

    func start() throws {
        process = Process()
        pipe = Pipe()
        process.executableURL = command
        process.arguments = arguments
        process.standardOutput = pipe
        try process.run()
        let descriptor = pipe.fileHandleForReading.fileDescriptor
        _ = fcntl(descriptor, F_SETFL, fcntl(descriptor, F_GETFL) | O_NONBLOCK)
        (text, lastLine, isIdle, isStopped, isKilled, locks) = ("", .now, true, false, false, 0)
    }

    func kill() {
        guard process.isRunning else { return }
        isKilled = true
        Foundation.kill(process.processIdentifier, SIGKILL)
        process.waitUntilExit()
    }

    /// Stops the process and waits until all of its threads are stopped.
    func stop(for duration: Duration) throws {
        Foundation.kill(process.processIdentifier, SIGSTOP)
        while try !threadStates().allSatisfy({ $0 == "T" }) { usleep(200) }
        isStopped = true
        stoppedUntil = .now + duration
        locks = try Self.lines(of: "/proc/locks").count {
            $0.split(separator: " ")[4] == "\(process.processIdentifier)"
        }
    }

    func resume() {
        guard isStopped else { return }
        (isStopped, locks, lastLine) = (false, 0, .now)
        Foundation.kill(process.processIdentifier, SIGCONT)
    }

    /// Reads what the process has written.
    ///
    /// - Returns: the number of new acknowledgements.
    /// - Throws: `CompanionKillsFailure` if the process has ended by itself.
    func drain() throws -> Int {
        var bytes = [UInt8](repeating: 0, count: 65_536)
        while true {
            let count = read(pipe.fileHandleForReading.fileDescriptor, &bytes, bytes.count)
            guard count > 0 else { break }
            text += String(decoding: bytes[..<count], as: UTF8.self)
        }
        var lines = text.split(separator: "\n", omittingEmptySubsequences: false)
        // A line that a kill has truncated is none.
        text = String(lines.removeLast())
        var count = 0
        for line in lines {
            let fields = line.split(separator: " ")
            guard let kind = fields.first.flatMap({ ChildLine(rawValue: String($0)) }) else {
                throw CompanionKillsFailure("\(name) has written \(line)")
            }
            isIdle = kind != .begin
            guard kind == .ack, fields.count == 3, let number = Int(fields[2]) else { continue }
            acknowledged[String(fields[1])] = number
            count += 1
        }
        if !lines.isEmpty { lastLine = .now }
        guard process.isRunning || isKilled else {
            throw CompanionKillsFailure("\(name) ended by itself: \(process.terminationStatus)")
        }
        return count
    }

    // MARK: The kernel's lists

    private func threadStates() throws -> [Substring] {
        let tasks = "/proc/\(process.processIdentifier)/task"
        return try FileManager.default.contentsOfDirectory(atPath: tasks).compactMap { task in
            // `4121 (soaker) T …`; a thread may have ended.
            try? Self.lines(of: "\(tasks)/\(task)/stat").first?.split(separator: ")").last?
                .split(separator: " ").first
        }
    }

    /// The lines of the kernel's list of locks about the files and folders in a folder.
    static func locks(inFolder folder: String) throws -> [Substring] {
        let names = try FileManager.default.subpathsOfDirectory(atPath: folder)
        let inodes = Set(
            try ([folder] + names.map { "\(folder)/\($0)" }).map {
                try FileManager.default.attributesOfItem(atPath: $0)[.systemFileNumber] as? Int ?? 0
            })
        return try lines(of: "/proc/locks").filter { line in
            let file = line.split(separator: " ")[5].split(separator: ":")
            return file.last.flatMap { Int($0) }.map(inodes.contains) ?? false
        }
    }

    private static func lines(of path: String) throws -> [Substring] {
        try String(contentsOfFile: path, encoding: .utf8).split(separator: "\n")
    }
}

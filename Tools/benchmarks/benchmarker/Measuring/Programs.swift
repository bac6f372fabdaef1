// Runs other programs: peers, child processes, and programs that describe the machine.

import Foundation

/// A failure of a measurement.
struct RaceFailure: Error, CustomStringConvertible {
    let description: String
    init(_ description: String) { self.description = description }
}

/// Runs a program to its end. It shares this process's standard error.
///
/// - Returns: its standard output.
/// - Throws: `RaceFailure` if its exit code is not 0.
@discardableResult
func output(of command: [String]) throws -> Data {
    let process = Process()
    process.executableURL = URL(filePath: "/usr/bin/env")
    process.arguments = command
    let output = Pipe()
    process.standardOutput = output
    try process.run()
    let data = output.fileHandleForReading.readDataToEndOfFile()
    process.waitUntilExit()
    guard process.terminationStatus == 0 else {
        throw RaceFailure("\(command[0]) ended with \(process.terminationStatus)")
    }
    return data
}

/// Runs a shell command and returns its output without surrounding whitespace; nil if it fails.
func shellText(_ command: String) -> String? {
    guard let data = try? output(of: ["sh", "-c", "\(command) 2> /dev/null"]) else { return nil }
    let text = String(decoding: data, as: UTF8.self)
    return text.trimmingCharacters(in: .whitespacesAndNewlines)
}

/// Prints a line of progress to standard error.
func reportProgress(_ text: String) { FileHandle.standardError.write(Data("\(text)\n".utf8)) }

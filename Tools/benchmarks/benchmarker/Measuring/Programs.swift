// Other programs: peers, processes of one's own, and those that say what the machine is.

import Foundation

/// Something went otherwise than it is needed.
struct RaceFailure: Error, CustomStringConvertible {
    let description: String
    init(_ description: String) { self.description = description }
}

/// Runs a program to its end. Its messages go where ours do.
///
/// - Returns: what it prints.
/// - Throws: `RaceFailure` where it says that something is wrong.
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

/// What a command of the shell prints, without the newline at its end; nil if it fails.
func shellText(_ command: String) -> String? {
    guard let data = try? output(of: ["sh", "-c", "\(command) 2> /dev/null"]) else { return nil }
    let text = String(decoding: data, as: UTF8.self)
    return text.trimmingCharacters(in: .whitespacesAndNewlines)
}

/// How it goes, for people.
func tell(_ text: String) { FileHandle.standardError.write(Data("\(text)\n".utf8)) }

// The processes that CompanionKills stops and kills: one appends as a companion, one owns the log.
// Spec/format/companions.md.

import DaybookTestKit
import EventSourcing
import Foundation
import LogFormat
import LogStorage

/// The newest number of each process, and what was out of order: each process appends 1, 2, 3, … under its own key.
struct Sequences: Projection, Codable, Equatable {
    static let name = "sequences"
    static let version = 1
    private(set) var last: [String: Int] = [:]
    /// Numbers that are missing, doubled or out of order.
    private(set) var faults: [String] = []

    mutating func fold(_ event: Event) {
        guard event.type == ValueSet.type, let value = try? event.payload(as: ValueSet.self),
            let number = Int(value.value)
        else { return }
        if number != last[value.key, default: 0] + 1, faults.count < 10 {
            faults.append("\(value.key): \(number) after \(last[value.key, default: 0])")
        }
        last[value.key] = number
    }
}

/// A line that a process writes to its standard output.
enum ChildLine: String {
    /// The process may hold locks.
    case begin
    /// The process holds no lock.
    case idle
    /// As `idle`, and the event with the number after the key is durable: `ack <key> <number>`.
    case ack

    /// Writes a line, without a buffer, which a kill would lose.
    func write(_ text: String = "") {
        FileHandle.standardOutput.write(Data("\(rawValue) \(text)\n".utf8))
    }
}

/// The log of the processes.
enum ChildLog {
    static let catalogue = EventCatalogue([.of(ValueSet.self)])

    static func open(_ folder: String) async throws -> EventStore {
        try await EventStore.open(at: folder, catalogue: catalogue, views: [Sequences.self])
    }

    static func companion(_ folder: String, _ name: String) async throws -> CompanionStore {
        try await CompanionStore.open(
            at: folder, name: name, catalogue: catalogue, views: [Sequences.self])
    }

    static func key(_ name: String) -> String { "\(name)-\(UInt64.random(in: 0 ... .max))" }

    static func sleep(_ milliseconds: ClosedRange<Int>) async throws {
        try await Task.sleep(for: .milliseconds(Int.random(in: milliseconds)))
    }
}

/// A companion's process.
package struct CompanionChild: Sendable {
    private let folder: String
    private let name: String

    /// - Parameters:
    ///   - folder: the log's folder.
    ///   - name: the companion's name.
    package init(folder: String, name: String) { (self.folder, self.name) = (folder, name) }

    /// Appends until the process is killed.
    ///
    /// - Throws: what an append throws, and `CompanionKillsFailure` if a view is not what was appended.
    package func run() async throws {
        let companion = try await ChildLog.companion(folder, name)
        let key = ChildLog.key(name)
        var number = 0
        while true {
            for _ in 0..<Int.random(in: 1...20) {
                number += 1
                try await append(number, key, to: companion)
            }
            if Int.random(in: 0..<20) == 0 { try await companion.refresh() }
            let view = await companion.view(Sequences.self)
            guard view.faults.isEmpty, view.last[key] == number else {
                throw CompanionKillsFailure(
                    "the view has \(view.last[key] ?? 0) events of \(key), not \(number): "
                        + "\(view.faults)")
            }
            try await ChildLog.sleep(0...400)
        }
    }

    private func append(_ number: Int, _ key: String, to companion: CompanionStore) async throws {
        let draft = try EventDraft(ValueSet(key: key, value: "\(number)"))
        while true {
            ChildLine.begin.write()
            do {
                try await companion.append(draft)
                return ChildLine.ack.write("\(key) \(number)")
            } catch is CompanionFullError {
            } catch let error as LogError where error.code == .locked {}
            ChildLine.idle.write()
            try await ChildLog.sleep(10...40)
        }
    }
}

/// The owner's process.
package struct OwnerChild: Sendable {
    private let folder: String

    /// - Parameter folder: the log's folder.
    package init(folder: String) { self.folder = folder }

    /// Appends and absorbs until the process is killed; suspended, closed and opened again from time to time.
    ///
    /// - Throws: what the store throws, and `CompanionKillsFailure` if its view is not what was appended.
    package func run() async throws {
        let key = ChildLog.key("owner")
        var number = 0
        while true {
            ChildLine.begin.write()
            let owner = try await ChildLog.open(folder)
            // The first companion may come later.
            try await owner.absorbCompanions()
            for _ in 0..<Int.random(in: 1...10) {
                for _ in 0..<Int.random(in: 1...10) {
                    number += 1
                    try await owner.append(ValueSet(key: key, value: "\(number)"))
                    ChildLine.ack.write("\(key) \(number)")
                    // It holds the log's lock all the time.
                    ChildLine.begin.write()
                    try await ChildLog.sleep(0...40)
                }
                let faults = owner.view(Sequences.self).faults
                guard faults.isEmpty else { throw CompanionKillsFailure("\(faults)") }
                if Int.random(in: 0..<4) == 0 { try await owner.checkpoint() }
                try await owner.suspend()
                ChildLine.idle.write()
                try await ChildLog.sleep(0...400)
                ChildLine.begin.write()
                try await owner.resume()
            }
            try await owner.close()
            ChildLine.idle.write()
            try await ChildLog.sleep(0...60)
        }
    }
}

// A history of an app with its own API: notes and lines are added offline, requests and answers are lost, the app is
// killed. At the end the API has each change once, in its order.

import DaybookTestKit
import EventSourcing
import Foundation
import LogStorage
import Replay
import Synchronization
import Testing

enum RequestHistory {
    /// The number of histories; DAYBOOK_HISTORIES for a longer search.
    static let runs =
        ProcessInfo.processInfo.environment["DAYBOOK_HISTORIES"].flatMap { Int($0) } ?? 60

    /// What the network does, and the state of the disk when the app was killed.
    private struct Network {
        var choices: Choices
        var isReliable = false
        /// True from a kill to the next start of the app.
        var isDead = false
        var snapshot: InMemoryFileSystem?
    }

    static func check(_ choices: inout Choices) async throws {
        let network = Mutex(Network(choices: choices))
        let disk = Mutex<InMemoryFileSystem?>(nil)
        let api = NotesAPI { request in
            network.withLock { network in
                guard !network.isDead else { return .lostRequest }
                guard !network.isReliable else { return .answered }
                let fate = Self.fate(&network.choices)
                if case .killed = fate {
                    network.isDead = true
                    network.snapshot = disk.withLock { $0?.snapshot() }
                }
                return fate
            }
        }
        var device = try await NotesDevice(api)
        var expected: [String: [String]] = [:]
        func draw<Value>(_ body: (inout Choices) -> Value) -> Value {
            network.withLock { body(&$0.choices) }
        }
        for _ in 0..<draw({ $0.int(in: 1...8) }) {
            for _ in 0..<draw({ $0.int(in: 0...4) }) {
                let note = "note-\(draw { $0.int(in: 0...2) })"
                let text = "line \(expected[note]?.count ?? 0)"
                if expected[note] == nil {
                    try await device.store.append(MemoAdded(note: note, text: text))
                } else {
                    try await device.store.append(LineAdded(note: note, text: text))
                }
                expected[note, default: []].append(text)
            }
            disk.withLock { $0 = device.files }
            try await device.run()
            let (isDead, snapshot) = network.withLock { network in
                defer { (network.isDead, network.snapshot) = (false, nil) }
                return (network.isDead, network.snapshot)
            }
            if isDead || draw({ $0.bool(oneIn: 4) }) { try await device.reopen(snapshot) }
            device.clock.advance(by: .seconds(draw { $0.int(in: 0...5_000) }))
        }
        network.withLock { $0.isReliable = true }
        var left = 20
        while device.store.view(Outbox.self).count > 0, left > 0 {
            left -= 1
            device.clock.advance(by: .seconds(3_700))
            try await device.run()
        }
        choices = network.withLock { $0.choices }
        choices.count("requests", by: api.requests.count)
        choices.count("changes", by: api.applied)
        try #require(device.store.view(Outbox.self).count == 0)
        try #require(api.violations == [])
        try #require(api.notes == expected)
    }

    private static func fate(_ choices: inout Choices) -> NotesAPI.Fate {
        switch choices.int(in: 0...15) {
        case 9: .lostRequest
        case 10: counted(.lostAnswer, "lost answers", &choices)
        case 11: counted(.killed, "kills", &choices)
        case 12: .instead(choices.bool() ? .page(404) : .page(200))
        case 13: .instead(.json([408, 425, 429][choices.int(in: 0...2)], "{}"))
        case 14: .instead(.json([500, 502, 503][choices.int(in: 0...2)], "{}"))
        case 15: .instead(.json(409, "{}"))
        default: .answered
        }
    }

    private static func counted(
        _ fate: NotesAPI.Fate, _ label: String, _ choices: inout Choices
    ) -> NotesAPI.Fate {
        choices.count(label)
        return fate
    }
}

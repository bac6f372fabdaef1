// Mistakes with a log's folder and with the arguments of `open`.

import Daybook
import DaybookTestKit
import Foundation
import Testing

private struct OtherTrips: Projection {
    static let name = "trips"
    static let version = 1
    mutating func fold(_ event: Event) {}
}

private struct Unnamed: Projection {
    static let name = ""
    static let version = 1
    mutating func fold(_ event: Event) {}
}

private struct Reserved: Projection {
    static let name = "daybook.trips"
    static let version = 1
    mutating func fold(_ event: Event) {}
}

private struct Lowered: Projection {
    static let name = "lowered"
    static let version = -1
    mutating func fold(_ event: Event) {}
}

/// A payload with a subject that is a number.
private struct Numbered: EventPayload, Codable {
    static let type = "com.example.numbered"
    var subject: Int?
}

/// A payload with a lane that is a number.
private struct Ranked: EventPayload, Codable {
    static let type = "com.example.ranked"
    var lane: Int
}

extension Mistake {
    static let ofOpening = ofFolders + ofConfiguration

    private static let ofFolders: [Mistake] = [
        Mistake(
            "a parent folder that does not exist", "LogError.noSuchLog",
            "missing does not exist; create it"
        ) {
            _ = try await EventStore.open(at: $0.appending(path: "missing/log"))
        },
        Mistake("an empty account", "EventError.refused", "the account is empty; name it") {
            _ = try await EventStore.open(at: $0.appending(path: "log"), account: "")
        },
        Mistake("a log of no account, opened for one", "LogError.wrongAccount", "account: nil") {
            let log = $0.appending(path: "log")
            try await EventStore.open(at: log).close()
            _ = try await EventStore.open(at: log, account: "ada")
        },
        Mistake("create: false without a log", "LogError.noSuchLog", "There is no log at") {
            _ = try await EventStore.open(at: $0.appending(path: "log"), create: false)
        },
        Mistake("a remote URL", "EventError.refused", "https://example.org/log is not the URL of") {
            _ in
            _ = try await EventStore.open(at: url("https://example.org/log"))
        },
        Mistake("a path in a URL without a scheme", "EventError.refused", "URL(filePath:)") { _ in
            _ = try await EventStore.open(at: url("/tmp/log"))
        },
        Mistake("a folder with other files", "LogError.notALog", "is not the folder of a log") {
            try Data("x".utf8).write(to: $0.appending(path: "letter.txt"))
            _ = try await EventStore.open(at: $0)
        },
        Mistake("a file instead of the folder", "LogError.notALog", "it is a file, not a folder") {
            let file = $0.appending(path: "file")
            try Data("x".utf8).write(to: file)
            _ = try await EventStore.open(at: file)
        },
        Mistake("a link instead of a file of the log", "LogError.io", "it is a symbolic link") {
            let log = $0.appending(path: "log")
            try await EventStore.open(at: log).close()
            let lock = log.appending(path: "lock")
            try FileManager.default.removeItem(at: lock)
            try FileManager.default.createSymbolicLink(
                at: lock, withDestinationURL: $0.appending(path: "elsewhere"))
            _ = try await EventStore.open(at: log)
        },
        Mistake("a folder that cannot be written to", "LogError.readOnly", "/log cannot be written")
        {
            _ in
            let files = InMemoryFileSystem()
            files.failing { operation, path in
                guard operation == "create" else { return nil }
                return FileError(
                    .readOnly, operation: operation, path: path, reason: "Permission denied")
            }
            _ = try await EventStore.open(
                at: URL(filePath: "/log"), environment: LogEnvironment(fileSystem: files))
        },
        Mistake("a log that is open already", "LogError.locked", "/log is in use") {
            let log = $0.appending(path: "log")
            let first = try await EventStore.open(at: log)
            _ = try await EventStore.open(at: log)
            try await first.close()
        },
        Mistake("the log of another account", "LogError.wrongAccount", "to another account") {
            let log = $0.appending(path: "log")
            try await EventStore.open(at: log, account: "a").close()
            _ = try await EventStore.open(at: log, account: "b")
        },
        Mistake("an account's log as the shared one", "LogError.wrongAccount", "to an account") {
            let log = $0.appending(path: "log")
            try await EventStore.open(at: log, account: "a").close()
            _ = try await EventStore.openShared(at: log)
        },
        Mistake("the shared log for an account", "LogError.wrongAccount", "to no account") {
            let log = $0.appending(path: "log")
            try await EventStore.openShared(at: log).close()
            _ = try await EventStore.open(at: log, account: "a")
        },
        Mistake("an account's name of 300 bytes", "LogError.tooLarge", "has at most 255 bytes") {
            _ in
            _ = try await EventStore.inMemory(account: String(repeating: "a", count: 300))
        },
        Mistake("a corrupt byte", "LogError.corrupt", "The log is damaged: ") {
            let log = $0.appending(path: "log")
            let store = try await EventStore.open(at: log, rules: rules)
            for number in 0..<40 { try await store.append(Trip(name: "trip \(number)")) }
            try await store.close()
            let names = try FileManager.default.contentsOfDirectory(atPath: log.path)
            let segment = log.appending(path: names.first { $0.hasSuffix(".lz4") } ?? "")
            var bytes = try Data(contentsOf: segment)
            bytes[bytes.count / 2] ^= 0xFF
            try bytes.write(to: segment)
            for name in names where !name.hasSuffix(".lz4") {
                try? FileManager.default.removeItem(at: log.appending(path: name))
            }
            _ = try await EventStore.open(at: log, rules: rules)
        },
        Mistake("a full device", "LogError.diskFull", "The device is full") { _ in
            let files = InMemoryFileSystem()
            let store = try await EventStore.open(
                at: URL(filePath: "/log"), environment: LogEnvironment(fileSystem: files))
            files.setQuota(files.usedBytes)
            // Random text, since a text that compresses well would fit.
            let noise = (0..<200_000).map { _ in UInt8.random(in: 97...122) }
            try await store.append(Trip(name: String(decoding: noise, as: UTF8.self)))
        },
    ]

    private static let ofConfiguration: [Mistake] = [
        Mistake("two rules for one type", "EventError.refused", "two rules are for the event type")
        {
            _ in
            _ = try await EventStore.inMemory(rules: rules + rules)
        },
        Mistake("a rule for a type of the library", "EventError.refused", "daybook.mine, which") {
            _ in
            _ = try await EventStore.inMemory(
                rules: [EventRule(type: "daybook.mine", action: nil) { _ in }])
        },
        Mistake(
            "a subject that is a number", "EventError.refused",
            "the subject of Numbered (com.example.numbered) is of the type Optional<Int>"
        ) { _ in
            _ = try await EventStore.inMemory(rules: [.of(Numbered.self)])
        },
        Mistake(
            "a lane that is a number", "EventError.refused",
            "the lane of Ranked (com.example.ranked) is of the type Int. Declare it as String"
        ) { _ in
            _ = try await EventStore.inMemory(rules: [.of(Ranked.self)])
        },
        Mistake(
            "a subject that is a number, without a rule", "EventError.refused",
            "Declare it as String or String?"
        ) { _ in
            try await store().append(Numbered(subject: 7))
        },
        Mistake("an action without a name", "EventError.refused", "has an empty action") { _ in
            _ = try await EventStore.inMemory(rules: [.of(Trip.self, action: "")])
        },
        Mistake("upcasters in a circle", "EventError.refused", "com.example.b form a cycle") { _ in
            _ = try await EventStore.inMemory(
                upcasters: [
                    Upcaster(from: "com.example.a", to: "com.example.b") { $0 },
                    Upcaster(from: "com.example.b", to: "com.example.a") { $0 },
                ])
        },
        Mistake("two upcasters from one type", "EventError.refused", "two upcasters lead from") {
            _ in
            _ = try await EventStore.inMemory(
                upcasters: [
                    Upcaster(from: "com.example.a", to: "com.example.b") { $0 },
                    Upcaster(from: "com.example.a", to: "com.example.c") { $0 },
                ])
        },
        Mistake("two views of one name", "EventError.refused", "two views have the name trips") {
            _ in
            _ = try await EventStore.inMemory(views: [Trips.self, OtherTrips.self])
        },
        Mistake("a view without a name", "EventError.refused", "has a name of 0 bytes") { _ in
            _ = try await EventStore.inMemory(views: [Unnamed.self])
        },
        Mistake("a view with a name of the library", "EventError.refused", "belongs to the library")
        {
            _ in
            _ = try await EventStore.inMemory(views: [Reserved.self])
        },
        Mistake("a view with a negative version", "EventError.refused", "has the version -1") { _ in
            _ = try await EventStore.inMemory(views: [Lowered.self])
        },
        Mistake("a share in percent, later", "EventError.refused", "garbageShare is 30.0") { _ in
            var policy = CompactionPolicy()
            policy.garbageShare = 30
            try await store().setCompactionPolicy(policy)
        },
        Mistake("a share in percent", "EventError.refused", "garbageShare is 30.0") { _ in
            var policy = CompactionPolicy()
            policy.garbageShare = 30
            _ = try await EventStore.open(
                at: URL(filePath: "/log"), compaction: policy, environment: .inMemory())
        },
    ]
}

extension MistakeTests {
    @Test(.enabled(if: FileManager.default.fileExists(atPath: "/proc/self")))
    func `a parent folder in which nothing can be created is not called missing`() async throws {
        let error = await #expect(throws: LogError.self) {
            try await EventStore.open(at: URL(filePath: "/proc/log"))
        }
        #expect(error?.description.contains("no folder can be created in /proc;") == true)
    }
}

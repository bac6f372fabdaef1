// Mistakes that the compiler names. One call of the compiler checks a file with all of them.

import Daybook
import DaybookTestKit
import Foundation
import TestSupport
import Testing

/// A mistake, and a part of the compiler's message about its line.
struct CompilerMistake: Sendable {
    let name: String
    /// A part of the message.
    let text: String
    /// The line of code.
    let code: String

    private init(_ name: String, _ text: String, _ code: String) {
        (self.name, self.text, self.code) = (name, text, code)
    }

    static let all: [CompilerMistake] = [
        CompilerMistake(
            "an event that is no payload", "requires that 'Note' conform to 'EventPayload'",
            #"_ = try await store.append(Note(text: "a"))"#),
        CompilerMistake(
            "several events that are no payloads", "requires that 'Note' conform to 'EventPayload'",
            #"_ = try await store.append(contentsOf: [Note(text: "a"), Note(text: "b")])"#),
        CompilerMistake(
            "one of several events that is no payload",
            "cannot convert value of type 'Note' to expected element type 'any EventPayload'",
            #"_ = try await store.append(contentsOf: [Walk(name: "a"), Note(text: "b")])"#),
        CompilerMistake(
            "a draft among payloads",
            "cannot convert value of type 'EventDraft' to expected element type 'any EventPayload'",
            #"_ = try await store.append(contentsOf: [Walk(name: "a"), EventDraft(type: "b")])"#),
        CompilerMistake(
            "several events without a label", "expected argument type 'EventDraft'",
            #"_ = try await store.append([Walk(name: "a"), Walk(name: "b")])"#),
        CompilerMistake(
            "a misspelt member", "(have 'nam:', expected 'name:')",
            #"_ = try await store.append(contentsOf: [Walk(nam: "a")])"#),
        CompilerMistake(
            "an append without await", "'async' but is not marked with 'await'",
            #"_ = try store.append(Walk(name: "a"))"#),
        CompilerMistake(
            "a payload without a type", "does not conform to protocol 'EventPayload'",
            "struct Untyped: EventPayload, Codable { var name: String }"),
        CompilerMistake(
            "a payload that is not Codable", "does not conform to protocol 'EventPayload'",
            #"struct Uncoded: EventPayload { static let type = "a"; var name: String }"#),
        CompilerMistake(
            "a type that can change", "is not concurrency-safe",
            #"struct Moving: EventPayload, Codable { static var type = "a" }"#),
        CompilerMistake(
            "a fold that changes nothing", "'self' is immutable",
            "struct Still: Projection { static let name = \"a\"; static let version = 1; "
                + "var count = 0; func fold(_ event: Event) { count += 1 } }"),
        CompilerMistake(
            "an append that a transaction waits for", "to parameter expecting synchronous function",
            #"try await store.write { _ in _ = try await store.append(Walk(name: "a")) }"#),
        CompilerMistake(
            "a variable that a transaction changes",
            "mutation of captured var 'count' in concurrently-executing code",
            "var count = 0; try await store.write { _ in count += 1 }"),
        CompilerMistake(
            "a model of the main actor in a query", "main actor-isolated",
            "_ = store.query(Walks.self) { _ in model.count }"),
        CompilerMistake(
            "a view in place of its type", "cannot convert value of type 'Walks'",
            "_ = try await EventStore.inMemory(views: [Walks()])"),
        CompilerMistake(
            "a payload in place of its rule", "cannot convert value of type 'Walk.Type'",
            "_ = try await EventStore.inMemory(rules: [Walk.self])"),
    ]

    /// A file with each mistake in a line of its own.
    static var file: String {
        """
        import Daybook
        struct Note: Sendable { var text: String }
        struct Walk: EventPayload, Codable { static let type = "walk"; var name: String }
        struct Walks: Projection {
            static let name = "walks"; static let version = 1
            mutating func fold(_ event: Event) {}
        }
        @MainActor final class Model { var count = 0 }

        """
            + all.enumerated().map {
                $1.code.hasPrefix("struct")
                    ? $1.code
                    : "func f\($0)(_ store: EventStore, _ model: Model) async throws { \($1.code) }"
            }.joined(separator: "\n")
    }
}

extension MistakeTests {
    @Test func `the compiler names a mistake in its own line`() throws {
        let folder = try TemporaryFolder()
        defer { folder.remove() }
        let source = CompilerMistake.file
        let file = try folder.file("Mistakes.swift", content: source)
        let output = try Self.typecheck(file)
        let lines = source.split(separator: "\n", omittingEmptySubsequences: false).map(String.init)
        for mistake in CompilerMistake.all {
            let index = try #require(lines.firstIndex { $0.contains(mistake.code) })
            let errors = output.split(separator: "\n").filter {
                $0.contains("Mistakes.swift:\(index + 1):") && $0.contains("error: ")
            }
            #expect(
                errors.contains { $0.contains(mistake.text) }, "\(mistake.name): \(errors)")
        }
        #expect(!output.contains("failed to produce diagnostic"))
    }

    /// The compiler's output for a file that imports the built library.
    private static func typecheck(_ file: URL) throws -> String {
        let products = URL(filePath: CommandLine.arguments[0]).deletingLastPathComponent()
        let root = URL(filePath: #filePath).deletingLastPathComponent()
            .deletingLastPathComponent().deletingLastPathComponent()
        let process = Process()
        process.executableURL = URL(filePath: "/usr/bin/env")
        process.arguments =
            [
                "swiftc", "-typecheck", "-swift-version", "6", "-diagnostic-style", "llvm",
                "-I", products.appending(path: "Modules").path,
            ]
            + ["CCrypto", "CCurl", "CLZ4", "CStatx"].flatMap {
                let map = root.appending(path: "Sources/\($0)/module.modulemap").path
                return ["-Xcc", "-fmodule-map-file=\(map)"]
            } + [file.path]
        let pipe = Pipe()
        process.standardError = pipe
        process.standardOutput = pipe
        try process.runAlone()
        let output = try pipe.fileHandleForReading.readToEnd() ?? Data()
        process.waitUntilExit()
        return String(decoding: output, as: UTF8.self)
    }
}

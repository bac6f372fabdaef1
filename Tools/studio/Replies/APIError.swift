// The errors of the JSON interface. Spec/operations/studio.md.

import EventSourcing
import Foundation
import LogFormat
import LogStorage
import StandardStreams

/// The reason for which a request is refused.
struct APIError: Error, CustomStringConvertible {
    var status: Int
    var code: String
    var message: String
    var remedy: String?
    /// The events that depend on the one that was to be discarded.
    var dependents: [UUID] = []

    init(_ status: Int, _ code: String, _ message: String, remedy: String? = nil) {
        self.status = status
        self.code = code
        self.message = message
        self.remedy = remedy
    }

    static func badRequest(_ message: String) -> APIError { APIError(400, "badRequest", message) }
    static func notFound(_ message: String) -> APIError { APIError(404, "notFound", message) }
    static func compacted(_ through: Position) -> APIError {
        APIError(
            422, "compacted",
            "the log is compacted through position \(through); earlier states can no longer be rebuilt",
            remedy: "choose a position from \(through) on")
    }
    static let changed = APIError(
        503, "changed", "compaction has removed events meanwhile", remedy: "ask again")
    static func afterEnd(_ last: Position) -> APIError {
        APIError(
            422, "afterEnd", "the log ends at position \(last)",
            remedy: "choose an earlier position")
    }
    static let notReady = APIError(
        503, "notReady", "the views are not folded up to this position yet",
        remedy: "wait a moment")

    /// The error that a request reports for one of the store.
    init(_ error: any Error) {
        switch error {
        case let error as APIError: self = error
        case let error as LogError:
            let status =
                switch error.code {
                case .locked: 503
                case .wrongAccount: 403
                case .noSuchLog, .notALog: 404
                default: 500
                }
            self.init(
                status, "\(error.code.rawValue)", error.description,
                remedy: error.recoverySuggestion)
        case let error as FileError: self.init(LogError(error))
        default: self.init(500, "internal", ErrorText.of(error))
        }
    }

    var description: String { remedy.map { "\(message); \($0)" } ?? message }

    /// The body of the reply.
    var json: [UInt8] {
        var error = JSONObjectWriter()
        error.appendMember("code", code)
        error.appendMember("message", message)
        error.appendMember("remedy", optional: remedy)
        if !dependents.isEmpty { error.appendMember("dependents", strings: dependents.map(\.text)) }
        var body = JSONObjectWriter()
        body.appendMember("error", raw: error.finished())
        return body.finished()
    }
}

extension JSONObjectWriter {
    /// Appends a string or `null`.
    mutating func appendMember(_ name: String, optional value: String?) {
        appendMember(name, raw: value.map(Self.string) ?? Array("null".utf8))
    }

    /// Appends an integer or `null`.
    mutating func appendMember(_ name: String, optional value: Int?) {
        appendMember(name, raw: Array((value.map { "\($0)" } ?? "null").utf8))
    }

    /// Appends a position or `null`.
    mutating func appendMember(_ name: String, optional value: Position?) {
        appendMember(name, optional: value.map { Int(clamping: $0.rawValue) })
    }

    /// Appends a list of objects.
    mutating func appendMember(_ name: String, list: [JSONObjectWriter]) {
        appendMember(name, raw: Self.array(list.map { $0.finished() }))
    }

    /// Appends a list of strings.
    mutating func appendMember(_ name: String, strings: [String]) {
        appendMember(name, raw: Self.array(strings.map(Self.string)))
    }

    /// Appends a list of integers.
    mutating func appendMember(_ name: String, numbers: [Int]) {
        appendMember(name, raw: Array("[\(numbers.map(String.init).joined(separator: ","))]".utf8))
    }

    /// Creates an object.
    static func object(_ build: (inout JSONObjectWriter) -> Void) -> JSONObjectWriter {
        var writer = JSONObjectWriter()
        build(&writer)
        return writer
    }
}

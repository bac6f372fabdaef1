// logtool replay: ships the outbox.

import ArgumentParser
import DaybookOffline
import Foundation
import LogStorage
import Logging

struct Replay: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Ships what the server has not settled.",
        discussion: """
            Prints how many events were applied, duplicate, rejected, in conflict and still \
            pending. With --once it returns when nothing more can be sent now: 0 all settled, \
            1 something is parked or in conflict, 75 something is still pending. Without, it keeps \
            the log and goes on until interrupted.

            With --receive it also takes in what other devices of the account have recorded, now \
            and every minute. With --keep it decides conflicts: mine makes this log's changes \
            again on top of what the server holds, theirs takes them back.

            Example: logtool replay ./log --to http://127.0.0.1:8080 --once
            """)

    @Argument(help: "The log's folder.", completion: .directory)
    var directory: String
    @Option(help: "The server: its address, or the full URL of its events endpoint.")
    var to: String
    @Option(help: "A file with the bearer token.", completion: .file())
    var tokenFile: String?
    @Flag(
        help: "Send the token over http to another machine, where others on the way can read it.")
    var allowPlainHttp = false
    @Option(help: .init("How long the server may be silent.", valueName: "seconds"))
    var timeout = 30.0
    @Option(
        help: .init(
            "The server's name for the log's account, if it has another one.", valueName: "name"))
    var account: String?
    @Flag(help: "Leave out the check that the token is for the log's account.")
    var anyAccount = false
    @Flag(help: "Return when nothing more can be sent now, or the server has been silent too long.")
    var once = false
    @Flag(help: "Also take in what other devices of the account have recorded.")
    var receive = false
    @Option(
        help: .init(
            "Decide conflicts: mine or theirs. Without it they wait for a decision.",
            valueName: "side"))
    var keep: Side?
    @OptionGroup var output: OutputOptions

    private static let receiveInterval = Duration.seconds(60)

    func validate() throws {
        let (_, origin) = try endpoint()
        guard timeout > 0, timeout <= 3_600 else {
            throw ValidationError("--timeout takes a number of seconds above 0, 3600 at most.")
        }
        guard account != "" else { throw ValidationError("--account takes a name.") }
        guard account == nil || !anyAccount else {
            throw ValidationError("--account and --any-account exclude each other.")
        }
        if tokenFile != nil, origin.isInClear, !allowPlainHttp {
            throw ValidationError(
                "the token would go to \(origin.host) in the clear. Use an https URL, or "
                    + "--allow-plain-http to send it all the same.")
        }
    }

    /// The endpoint and its origin; a server's bare address stands for its `/v1/events`.
    private func endpoint() throws -> (url: URL, origin: HTTPOrigin) {
        guard let url = URL(string: to), let origin = try? HTTPOrigin(endpoint: url) else {
            throw ValidationError("--to takes an http or https URL without a user name.")
        }
        return (HTTPTransport.eventsURL(of: url), origin)
    }

    func run() async throws {
        try await Exit.mapping { try await work() }
    }

    private func work() async throws {
        let (url, _) = try endpoint()
        try StandardStream.requireDescriptors(StandardStream.networkDescriptorsMin)
        let credentials: any Credentials
        if let tokenFile {
            credentials = TokenFile(path: tokenFile)
            _ = try await credentials.token()
        } else {
            credentials = NoCredentials()
        }
        let store = try await ToolStore.open(directory)
        var options = Replayer.Options()
        options.reads = receive
        options.readInterval = Self.receiveInterval
        options.resolver = keep?.resolver
        let transport = HTTPTransport(
            endpoint: url, timeoutSeconds: timeout, allowsTokenInClear: allowPlainHttp,
            account: anyAccount ? .off : account.map { .named($0) } ?? .ofLog)
        let replayer = Replayer(
            store, transport: transport, credentials: credentials,
            options: options, logger: Logger(label: "logtool") { _ in SwiftLogNoOpLogHandler() })
        let total = store.view(Outbox.self).count
        let progress = Progress("shipped", of: .items(total))
        let end: Replayer.End = once ? .whenNothingMoves : .never
        let result = await Interruption.result {
            try await replayer.run(until: end) {
                progress.update($0.applied + $0.duplicate)
            }
        }
        progress.finish()
        try await store.close()
        let report = try result.get()
        var row = ViewRow()
        row.add("applied", report.applied)
        row.add("duplicate", report.duplicate)
        row.add("rejected", report.rejected)
        row.add("conflict", report.conflict)
        row.add("pending", report.pending)
        if receive { row.add("received", report.received) }
        if keep != nil { row.add("resolved", report.resolved) }
        RowWriter.writeSummary(row, output.format)
        if let message = report.message { Message.error(message) }
        if report.unusable > 0 {
            Message.note("\(report.unusable) events of other devices could not be taken in")
        }
        if report.refused > 0 {
            Message.note(
                "refused \(report.refused) events that the server handed out: their types are kept "
                    + "on the device")
        }
        if report.pending > report.held {
            Message.note("\(report.pending - report.held) events are still to be sent")
            throw Exit.unavailable
        }
        if report.isBehind {
            Message.note("not everything of the account's other devices was read")
            throw Exit.unavailable
        }
        if report.held > 0 {
            Message.note("\(report.held) events wait behind something parked or in conflict")
            throw Exit.findings
        }
    }
}

/// A token in a file, read again when the server refuses it.
private struct TokenFile: Credentials {
    let path: String

    func token() throws -> AccessToken? {
        guard let data = FileManager.default.contents(atPath: path) else {
            throw LogError(.io, path: path, "the token file cannot be read")
        }
        let token = String(decoding: data, as: UTF8.self)
            .trimmingCharacters(in: .whitespacesAndNewlines)
        guard !token.isEmpty, token.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7F }) else {
            throw LogError(.io, path: path, "the token file does not hold one token")
        }
        return AccessToken(token)
    }

    func refresh(_ old: AccessToken?) throws -> AccessToken? {
        let token = try token()
        return token == old ? nil : token
    }
}

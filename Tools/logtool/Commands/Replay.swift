// logtool replay: ships the outbox.

import ArgumentParser
import DaybookOffline
import Foundation
import LogFormat
import LogStorage
import Logging

struct Replay: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Ships the events that the server has not settled.",
        discussion: """
            Prints how many events were applied, duplicate, rejected, in conflict and still \
            pending. With --once it returns when nothing more can be sent now: 0 all settled, 1 \
            something is parked or in conflict, 75 something is still pending. Without it, replay \
            holds the log's lock and continues until interrupted.

            With --receive it also receives the events of the account's other devices, now and \
            every minute. With --keep it decides conflicts: mine records this log's changes again \
            on top of the server's, theirs retracts them.

            Example: logtool replay ./log --to http://127.0.0.1:8080 --once
            """)

    @Argument(help: "The log's folder.", completion: .directory)
    var directory: String
    @Option(help: "The server: its address, or the full URL of its events endpoint.")
    var to: String
    @Option(help: "A file with the bearer token.", completion: .file())
    var tokenFile: String?
    @Flag(
        help: "Send the token over http to another machine, unencrypted.")
    var allowPlainHttp = false
    @Option(help: .init("The longest silence of the server.", valueName: "seconds"))
    var timeout = 30.0
    @Option(
        help: .init(
            "The server's name for the log's account, if it has another one.", valueName: "name"))
    var account: String?
    @Flag(help: "Skip the check that the token is for the log's account.")
    var anyAccount = false
    @Flag(help: "Return when nothing more can be sent now, or the server has been silent too long.")
    var once = false
    @Flag(help: "Also receive the events of the account's other devices.")
    var receive = false
    @Option(
        help: .init(
            "Decide conflicts: mine or theirs. Without it they wait for a decision.",
            valueName: "side"))
    var keep: Side?
    @OptionGroup var ask: AskOptions
    @OptionGroup var output: OutputOptions

    private static let receiveInterval = Duration.seconds(60)

    func validate() throws {
        let (_, origin) = try endpoint()
        guard timeout > 0, timeout <= 3_600 else {
            throw ValidationError("--timeout must be above 0 and at most 3600 seconds.")
        }
        guard account != "" else { throw ValidationError("--account needs a name.") }
        guard account == nil || !anyAccount else {
            throw ValidationError("--account and --any-account exclude each other.")
        }
        if tokenFile != nil, origin.isInClear, !allowPlainHttp {
            throw ValidationError(
                "the token would be sent to \(origin.host) unencrypted. Use an https URL, or "
                    + "--allow-plain-http to send it nevertheless.")
        }
    }

    /// Parses --to: the endpoint and its origin. A URL without a path means its `/v1/events`.
    private func endpoint() throws -> (url: URL, origin: HTTPOrigin) {
        guard let url = URL(string: to), let origin = try? HTTPOrigin(endpoint: url) else {
            throw ValidationError("--to must be an http or https URL without a user name.")
        }
        return (HTTPTransport.eventsURL(of: url), origin)
    }

    func run() async throws {
        try await Exit.mapping { try await ask.opening(directory) { try await work() } }
    }

    private func work() async throws {
        let (url, _) = try endpoint()
        try StandardStream.requireDescriptors(StandardStream.networkDescriptorsMin)
        let credentials: any Credentials
        if let tokenFile {
            let file = TokenFile(path: tokenFile)
            if let warning = try file.read().warning { Message.note("note: \(warning)") }
            credentials = file
        } else {
            credentials = NoCredentials()
        }
        let store = try await ToolStore.open(directory)
        // The command names the log and the token, so they belong together.
        if tokenFile != nil || account != nil { try await store.adoptUnsentEvents() }
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
        Stdout.note(effect: "the run is complete; the answers are recorded")
        var row = ViewRow()
        row.appendField("applied", report.applied)
        row.appendField("duplicate", report.duplicate)
        row.appendField("rejected", report.rejected)
        row.appendField("conflict", report.conflict)
        row.appendField("pending", report.pending)
        if receive { row.appendField("received", report.received) }
        if report.withoutRule > 0 { row.appendField("withoutRule", report.withoutRule) }
        if keep != nil { row.appendField("resolved", report.resolved) }
        RowWriter.writeSummary(row, output.format)
        if let message = report.message { Message.error(message) }
        if let time = report.restoredTo {
            Message.note(
                "the server was restored to its state of \(time); "
                    + "\(report.shippedAgain.counted("event")) shipped again")
        }
        if let server = report.otherServer {
            Message.note(
                "the log has synced with another database than that of \(server); "
                    + "\(report.shippedAgain.counted("event")) shipped again, "
                    + "\(report.compacted.counted("line")) compacted before")
        }
        if report.notAccepted > 0 {
            Message.note(
                "the server does not accept \(report.notAccepted.counted("event")) that this log has "
                    + "synced before, at \(report.notAcceptedPositions.listed); see `logtool inspect "
                    + "--from POSITION`")
        }
        if report.unusable > 0 {
            Message.note("\(report.unusable) events of other devices could not be imported")
        }
        if report.refused > 0 {
            Message.note(
                "refused \(report.refused) events from the server: their types stay on the device")
        }
        if report.pending > report.held {
            Message.note("\(report.pending - report.held) events are still to be sent")
            throw Exit.unavailable
        }
        if report.isBehind {
            Message.note("not all events of the account's other devices were received")
            throw Exit.unavailable
        }
        if report.held > 0 {
            Message.note(
                "\(report.held) events are parked, in conflict, or wait for such events")
            throw Exit.findings
        }
        if report.notAccepted > 0 { throw Exit.findings }
    }
}

/// A token in a file. The file is read again when the server refuses the token.
private struct TokenFile: Credentials {
    let path: String

    private static let bytesMax = 64 * 1_024

    func token() throws -> AccessToken? { try read().token }

    /// Reads the token, and the warning about a file that others may use.
    func read() throws -> (token: AccessToken, warning: String?) {
        let file = try SecretFile(path, kind: "token file", bytesMax: Self.bytesMax)
        let token = String(decoding: file.bytes, as: UTF8.self)
            .trimmingCharacters(in: .whitespacesAndNewlines.union(["\u{FEFF}"]))
        guard !token.isEmpty, token.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7F }) else {
            throw LogError(.io, path: path, "the token file must contain exactly one token")
        }
        return (AccessToken(token), file.warning())
    }

    func refresh(_ old: AccessToken?) throws -> AccessToken? {
        let token = try token()
        return token == old ? nil : token
    }
}

// logtool studio: shows a log in a browser. Spec/operations/studio.md.

import ArgumentParser
import DaybookOffline
import Foundation
import LogStorage
import Studio

struct StudioCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "studio",
        abstract: "Shows a log in a browser.",
        discussion: """
            Serves pages on this machine that show the events, the views at any position, the \
            outbox and the files, and follows the log while another process writes it. Prints the \
            address, which contains a token: only a browser that was given it is answered. Reads \
            only, unless --write is given. Ends with Control-C.

            Example: logtool studio ./log --open
            """)

    @Argument(help: "The log's folder.", completion: .directory)
    var directory: String
    @Option(help: "The account that the log must have.")
    var account: String?
    @Option(help: "The port of 127.0.0.1; 0 for a free one.")
    var port: UInt16 = 0
    @Flag(help: "Open the address in the browser.")
    var open = false
    @Flag(help: "Allow decisions on the outbox: retry, discard, resolve.")
    var write = false
    @Option(
        help: .init(
            "Write one HTML file with the log's data inside instead, to be opened without a server.",
            valueName: "file"),
        completion: .file(extensions: ["html"]))
    var html: String?

    func validate() throws {
        guard account != "" else { throw ValidationError("--account needs a name.") }
        if html != nil, port != 0 || open || write {
            throw ValidationError("--html cannot be used with --port, --open or --write.")
        }
    }

    func run() async throws {
        try await Exit.mapping {
            if let html { return try await writePage(to: html) }
            let result = await Interruption.result { try await serve() }
            do { try result.get() } catch is CancellationError {}
        }
    }

    private func serve() async throws {
        let (directory, account, opensBrowser) = (directory, account, open)
        let server = StudioServer(
            directory, account: account, port: port,
            open: write
                ? { @Sendable in try await ToolStore.open(directory, account: account) } : nil)
        do {
            try await server.run { address, origin in
                Stdout.write(Array("listening on \(address)\n".utf8))
                Stdout.flush()
                if opensBrowser { Self.openBrowser(at: server, origin) }
            }
        } catch let error as StudioError {
            Message.error(error.description)
            throw Exit.io
        }
    }

    /// Starts the system's command that opens a page.
    private static func openBrowser(at server: StudioServer, _ origin: String) {
        do {
            let process = Process()
            process.executableURL = URL(filePath: "/usr/bin/env")
            #if os(macOS)
                let command = "open"
            #else
                let command = "xdg-open"
            #endif
            process.arguments = [command, try server.writeOpeningFile(for: origin)]
            process.standardOutput = FileHandle.nullDevice
            process.standardError = FileHandle.nullDevice
            try process.run()
        } catch {
            Message.note("the browser could not be opened: open the address yourself")
        }
    }

    private func writePage(to path: String) async throws {
        do {
            try await Interruption.result { try writePageNow(to: path) }.get()
        } catch is CancellationError {
            Message.error("interrupted; nothing was written")
            throw Exit.interrupted
        }
    }

    private func writePageNow(to path: String) throws {
        Self.allowManyOpenFiles()
        let progress = Progress(
            "read", unit: nil,
            of: .bytes(LogReader(directory).bytesToRead() * MailedPage.reads))
        defer { progress.finish() }
        let page: MailedPage
        do {
            page = try MailedPage(of: directory, account: account) { progress.add(bytes: $0) }
        } catch {
            try Task.checkCancellation()
            throw error
        }
        progress.finish()
        try Task.checkCancellation()
        try page.write(to: path)
        Message.note("wrote \(path): \(page.events) events, \(page.byteCount) bytes")
    }

    #if canImport(Darwin)
        private static let openFiles = RLIMIT_NOFILE
    #else
        private static let openFiles = __rlimit_resource_t(RLIMIT_NOFILE.rawValue)
    #endif

    /// Raises the number of files that this process may open as far as the system allows: the segments of the log
    /// stay open while the page is put together.
    private static func allowManyOpenFiles() {
        var limit = rlimit()
        guard getrlimit(Self.openFiles, &limit) == 0 else { return }
        limit.rlim_cur = limit.rlim_max
        setrlimit(Self.openFiles, &limit)
    }
}

// The command that runs devices and a server on real connections. One run, not a search on all cores.

import ArgumentParser
import DaybookTestKit
import Foundation
import WireHistories

/// Runs real devices against a real server that is killed, with a hostile proxy before each device.
struct Wire: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Real devices and the real syncserver, with a hostile proxy between them.",
        discussion: """
            Every device records, syncs, is closed and opened; the server is killed and started \
            again; connections break and bytes are damaged. In the end the server must have every \
            event once, and all devices must show the same.
            """)
    @Option(help: "Number of devices of the account.")
    var devices = 3
    @Option(help: "Number of events that the devices record together.")
    var events = 100_000
    @Option(help: "Lowest number of kills of the server.")
    var kills = 20
    @Option(help: "Seed of the faults and events.")
    var seed = Property.defaultSeed
    @Option(help: "Path of the built syncserver. Default: beside this tool.")
    var server: String?

    func validate() throws {
        guard devices > 0, events > 0, kills >= 0 else {
            throw ValidationError("'--devices' and '--events' must be more than 0.")
        }
    }

    func run() async throws {
        let defaultServer = URL(filePath: CommandLine.arguments[0]).deletingLastPathComponent()
            .appending(path: "syncserver")
        var options = WireHistory.Options()
        (options.devices, options.events, options.kills) = (devices, events, kills)
        options.seed = seed
        let history = WireHistory(
            server: server.map { URL(filePath: $0) } ?? defaultServer, options: options,
            progress: printToStandardError)
        do {
            let counts = try await history.run()
            for (label, count) in counts.sorted(by: { $0.key < $1.key }) {
                print("\(label): \(count)")
            }
        } catch let failure as WireFailure {
            printToStandardError("\(failure) (seed \(seed))")
            throw ExitCode(1)
        }
    }
}

/// Prints a message of progress or failure to stderr.
@Sendable func printToStandardError(_ text: String) {
    FileHandle.standardError.write(Data("soak: \(text)\n".utf8))
}

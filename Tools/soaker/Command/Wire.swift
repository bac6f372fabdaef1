// A history of devices and a server on real connections. One run, not a search on all cores.

import ArgumentParser
import DaybookTestKit
import Foundation
import WireHistories

/// Real devices, a real server that is killed, a hostile proxy before each device.
struct Wire: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Devices and syncserver as they are shipped, with a hostile proxy between them.",
        discussion: """
            Every device records, syncs, is closed and opened; the server is killed and started \
            again; connections break and bytes are damaged. In the end the server must hold \
            everything once, and all devices must show the same.
            """)
    @Option(help: "Devices of the account.")
    var devices = 3
    @Option(help: "Events that they record together.")
    var events = 100_000
    @Option(help: "How often the server is killed at least.")
    var kills = 20
    @Option(help: "What decides on faults and events.")
    var seed = Property.defaultSeed
    @Option(help: "The built syncserver; that beside this tool if it is missing.")
    var server: String?

    func validate() throws {
        guard devices > 0, events > 0, kills >= 0 else {
            throw ValidationError("'--devices' and '--events' must be more than 0.")
        }
    }

    func run() async throws {
        let beside = URL(filePath: CommandLine.arguments[0]).deletingLastPathComponent()
            .appending(path: "syncserver")
        var options = WireHistory.Options()
        (options.devices, options.events, options.kills) = (devices, events, kills)
        options.seed = seed
        let history = WireHistory(
            server: server.map { URL(filePath: $0) } ?? beside, options: options, say: tell)
        do {
            let counts = try await history.run()
            for (label, count) in counts.sorted(by: { $0.key < $1.key }) {
                print("\(label): \(count)")
            }
        } catch let failure as WireFailure {
            tell("\(failure) (seed \(seed))")
            throw ExitCode(1)
        }
    }
}

/// Tells whoever looks on.
@Sendable func tell(_ text: String) {
    FileHandle.standardError.write(Data("soak: \(text)\n".utf8))
}

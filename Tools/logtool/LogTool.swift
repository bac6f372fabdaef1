// The command line of a log: look into it, verify it, feed it, compact it, ship it. Data go to stdout,
// messages and progress to stderr. Spec/logtool.md.

import ArgumentParser
import Foundation

struct LogTool: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "logtool",
        abstract: "Inspects, verifies, feeds, compacts and ships Daybook logs.",
        discussion: """
            Exit codes: 0 clean, 1 findings, 64 usage, 65 bad data, 66 no such log, 74 I/O, \
            75 locked or offline.
            """,
        subcommands: [
            Import.self, Inspect.self, Verify.self, Views.self, Why.self, Parked.self, Compact.self,
            Replay.self, Export.self, Repair.self,
        ])
}

@main
enum Main {
    static func main() async {
        StandardStream.prepare()
        do {
            try StandardStream.requireDescriptors(StandardStream.descriptorsMin)
        } catch { exit(error.rawValue) }
        await LogTool.main()
    }
}

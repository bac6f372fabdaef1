// The long-running searches, on all cores, for a given time or up to a given size. The tests run the same
// searches on a small scale. Tools/soak starts it; Spec/testing/testing.md describes each search.

import ArgumentParser
import StandardStreams

@main
enum Main {
    static func main() async {
        StandardStream.prepare()
        ProgramArguments.requireUTF8(of: "soak")
        await Soaker.main()
    }
}

struct Soaker: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "soak",
        abstract: "Searches for histories that lose data.",
        discussion: """
            Prints the number of cases of each kind, and the seed of a failure. Exits with 1 if \
            there is one.

            EXAMPLE: soak crashes --minutes 30
            """,
        subcommands: [
            Crashes.self, CompanionHistories.self, KillCompanions.self, AppendCompanion.self,
            OwnLog.self, Small.self, Faults.self, Rot.self, Store.self, Sync.self, Devices.self,
            Streams.self, Requests.self, Reading.self, Rows.self, KillRows.self, FollowRows.self,
            Wire.self,
            Shipping.self,
            Downloads.self,
            Download.self, Year.self, Assets.self,
        ])
}

// The long-running searches of DaybookTestKit, on all cores, for a given time or through a given
// scope: what the tests do in small. Started by Tools/soak; Spec/testing/testing.md says what each does.

import ArgumentParser

@main
struct Soaker: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "soak",
        abstract: "Looks for a history that loses data, for as long as you like.",
        discussion: """
            Prints what was tried, by what it is, and the seed of what failed. Exits with 1 if \
            something did.

            EXAMPLE: soak crashes --minutes 30
            """,
        subcommands: [
            Crashes.self, Small.self, Faults.self, Rot.self, Store.self, Sync.self, Devices.self,
            Wire.self, Shipping.self, Downloads.self, Download.self, Year.self, Assets.self,
        ])
}

// The phone benchmark.

import ArgumentParser

struct PhoneCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "phone", abstract: "Wear of the flash, wake-ups, idle memory.")
    @OptionGroup var options: BenchmarkOptions

    func run() async throws { try await Self.measure(options) }

    static func measure(_ options: BenchmarkOptions) async throws {
        try await options.inFolder { folder in
            let result = try Phone(
                origin: Origin(full: options.full, input: options.source.name, folder),
                source: options.source, folder: folder,
                events: options.full ? 50_000 : 10_000, idleSeconds: options.full ? 10 : 5,
                stateEntries: options.full ? 200_000 : 20_000
            ).measure()
            let markdown = PhoneReport(result: result).markdown
            print(markdown)
            if let reports = try options.reports {
                try reports.write(
                    markdown, "phone.md", before: "<!-- Written by Tools/checks/price -->")
                try reports.write(result, "phone.json")
            }
        }
    }
}

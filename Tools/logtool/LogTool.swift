// The command logtool. Data go to stdout, messages and progress to stderr. Spec/operations/logtool.md.

import ArgumentParser
import DaybookOffline
import Foundation

struct LogTool: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "logtool",
        abstract: "Inspects, verifies, feeds, compacts and ships Daybook logs.",
        discussion: "Exit codes:\n"
            + Exit.meanings.map { "  \($0.rawValue)  \($1)" }.joined(separator: "\n"),
        version: DaybookVersion.text,
        subcommands: [
            Import.self, Inspect.self, Verify.self, Doctor.self, Views.self, Why.self, Parked.self,
            Compact.self, Replay.self, Export.self, Backup.self, Repair.self, SQLCommand.self,
            Companions.self, StudioCommand.self, MCPCommand.self,
        ])
}

@main
enum Main {
    static func main() async {
        StandardStream.prepare()
        ProgramArguments.requireUTF8(of: "logtool")
        do {
            try StandardStream.requireDescriptors(StandardStream.descriptorsMin)
        } catch { exit(error.rawValue) }
        await LogTool.main(ProgramArguments.separated)
    }
}

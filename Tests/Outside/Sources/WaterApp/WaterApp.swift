// The code of the article "Companions": the app, which owns the log.

// Companions-3 begins
import Daybook
import Foundation
import Water

@main
struct WaterApp {
    static func main() async throws {
        let (folder, goal) = (URL(filePath: CommandLine.arguments[1]), 600)
        let store = try await EventStore.open(at: folder, rules: waterRules, views: [Water.self])
        // The first companion may come while the app runs.
        try await store.absorbCompanions()
        for await millilitres in store.query(Water.self, { $0.millilitres }).changes {
            FileHandle.standardOutput.write(Data("\(millilitres) ml\n".utf8))
            if millilitres >= goal { break }
        }
        try await store.close()
    }
}
// Companions-3 ends

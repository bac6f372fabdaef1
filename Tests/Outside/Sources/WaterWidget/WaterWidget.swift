// The code of the article "Companions": a widget, which does not own the log.

// Companions-2 begins
import Daybook
import Foundation
import Water

@main
struct WaterWidget {
    static func main() async throws {
        let folder = URL(filePath: CommandLine.arguments[1])
        let companion = try await EventStore.openCompanion(
            at: folder, name: "widget", rules: waterRules, views: [Water.self])
        try await companion.append(GlassDrunk(millilitres: 200))
        print(await companion.view(Water.self).millilitres, "ml")
    }
}
// Companions-2 ends

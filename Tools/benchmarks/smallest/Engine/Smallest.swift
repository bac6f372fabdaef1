// The least that an app with events of its own does with the engine. See Spec/benchmarks.

import Daybook
import Foundation

@main
enum Smallest {
    static func main() async throws {
        let store = try await EventStore.open(at: URL(filePath: CommandLine.arguments[1]))
        try await store.close()
    }
}

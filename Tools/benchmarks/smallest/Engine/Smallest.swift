// The smallest program that uses the engine, for what an app pays: Tools/checks/price builds it.

import Daybook
import Foundation

@main
enum Smallest {
    static func main() async throws {
        let store = try await EventStore.open(at: URL(filePath: CommandLine.arguments[1]))
        try await store.close()
    }
}

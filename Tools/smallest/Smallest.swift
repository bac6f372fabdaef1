// The least that an app does with Daybook, to see what it becomes bigger by: see Spec/benchmarks.

import Daybook
import Foundation

@main
enum Smallest {
    static func main() async throws {
        let store = try await OfflineStore.open(at: URL(filePath: CommandLine.arguments[1]))
        try await store.close()
    }
}

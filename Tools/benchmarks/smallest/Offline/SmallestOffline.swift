// The smallest program that uses DaybookOffline, for measuring its size. See Spec/benchmarks.

import DaybookOffline
import Foundation

@main
enum SmallestOffline {
    static func main() async throws {
        let store = try await OfflineStore.open(at: URL(filePath: CommandLine.arguments[1]))
        try await store.close()
    }
}

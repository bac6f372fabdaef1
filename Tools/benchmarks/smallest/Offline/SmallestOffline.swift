// The smallest program that uses DaybookOffline, for what an app pays: Tools/checks/price builds it.

import DaybookOffline
import Foundation

@main
enum SmallestOffline {
    static func main() async throws {
        let store = try await OfflineStore.open(at: URL(filePath: CommandLine.arguments[1]))
        try await store.close()
    }
}

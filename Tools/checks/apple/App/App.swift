// An app that uses what the libraries have only on Apple's systems: the keychain, the system's network path,
// and a query on a screen.

import Daybook
import DaybookOffline
import Foundation
import Observation
import SwiftUI

func openStore(home: URL) async throws -> OfflineStore {
    let secrets = KeychainSecretStore(service: "com.example.app")
    let storage = DeviceStorage(.iOS(home: home), secrets: [secrets])
    try await storage.prepare()
    return try await OfflineStore.open(
        at: storage.database.appending(path: "user-456"), account: "user-456")
}

func printPaths() async {
    for await path in SystemReachability().paths { print(path) }
}

struct CityCount: View {
    @State private var count: Observed<Int>

    init(_ store: OfflineStore) {
        _count = State(initialValue: Observed(store.query(CitiesView.self) { $0.cityIDs.count }))
    }

    var body: some View { Text("\(count.value) cities") }
}

struct NoteCount: View {
    @Queried private var count: Int

    init(_ store: OfflineStore, city: String) {
        _count = Queried(store.notes(in: city).map(\.count))
    }

    var body: some View { Text("\(count) notes") }
}

// The code of the article "Caching cities for offline use".

import DaybookOffline
import Foundation

package enum Cities {
    package static func cache(
        _ store: OfflineStore, _ description: [UInt8], _ images: [CityImage]
    ) async throws -> Int {
        // Cities-1 begins
        let city = try await store.cities.cache(
            json: description, images: images, isExplicit: true, for: "user-456")
        print(city.version, city.storageSize)
        // Cities-1 ends
        return city.storageSize
    }

    package static func read(_ store: OfflineStore) async throws {
        // Cities-2 begins
        if let (city, data) = try await store.cities.read("lisbon") {
            print(data.name, data.description)
            for image in city.images {
                let bytes = try await store.files.read(image.file)  // checked against its SHA-256
                print(image.kind.rawValue, bytes.count)
            }
        }
        // Cities-2 ends
    }

    package static func list(_ store: OfflineStore) async -> (Int, [OfflineCity]) {
        // Cities-3 begins
        for await cities in store.cities.offlineCities.changes {
            print(cities.map(\.cityId))  // most recently accessed first
            break
        }
        let used = store.cities.storageUsed.current
        let old = await store.cities.stale(for: "user-456")
        // Cities-3 ends
        return (used, old)
    }

    package static func tidy(_ store: OfflineStore) async throws -> CityCleanUp {
        // Cities-4 begins
        let report = try await store.cities.cleanUp(for: "user-456")
        print(report.outdated, report.evicted, report.files.bytes)
        // Cities-4 ends
        // Cities-5 begins
        try await store.cities.remove("lisbon")
        // Cities-5 ends
        return report
    }
}

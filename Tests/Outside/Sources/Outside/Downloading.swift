// The code of the article "Downloading cities".

import DaybookOffline
import Foundation

package enum Downloading {
    package static func start(
        _ store: OfflineStore, _ server: URL, _ credentials: any Credentials,
        _ reachability: any Reachability
    ) -> (DownloadManager, Task<Void, any Error>) {
        // Downloads-1 begins
        let manager = DownloadManager(
            store, base: server, credentials: credentials, user: "user-456",
            reachability: reachability)
        let downloading = Task { try await manager.run() }
        // Downloads-1 ends
        return (manager, downloading)
    }

    package static func watch(_ store: OfflineStore, _ manager: DownloadManager) async throws {
        // Downloads-2 begins
        let job = try await store.downloads.queue("lisbon")
        for await job in manager.progress(of: job.id) {
            print(job.status.rawValue, job.progress, job.currentStep)
            if !job.status.isUnfinished { break }
        }
        // Downloads-2 ends
    }

    package static func steer(
        _ store: OfflineStore, _ manager: DownloadManager, _ job: DownloadJob
    ) async throws {
        // Downloads-3 begins
        try await manager.pause(job.id)  // records the current progress
        try await store.downloads.resume(job.id)
        try await store.downloads.cancel(job.id)
        // Downloads-3 ends
    }

    package static func retry(_ store: OfflineStore) async throws {
        // Downloads-4 begins
        for job in store.downloads.jobs(.failed).current {
            print(job.cityId, job.errorMessage ?? "")
            try await store.downloads.retry(job.id)
        }
        // Downloads-4 ends
    }

    // Downloads-5 begins
    struct Bundled: CityManifestSource {
        let images: URL

        func manifest(of cityId: String) async throws -> CityManifest {
            let city = CityData(
                id: cityId, name: "Lisbon", country: "Portugal", description: "",
                costOfLiving: 62, internetSpeed: 110, safetyRating: 4.5, climate: "mild")
            let hero = CityManifest.Image(
                id: "hero", url: images.appending(path: "\(cityId).jpg"), kind: .hero,
                width: 1_280, height: 720)
            return CityManifest(cityId: cityId, cityData: city.json, images: [hero])
        }
    }
    // Downloads-5 ends

    package static func bundled(
        _ store: OfflineStore, _ images: URL
    ) -> (DownloadManager, Task<Void, any Error>) {
        // Downloads-6 begins
        let manager = DownloadManager(store, source: Bundled(images: images), user: "user-456")
        // Downloads-6 ends
        return (manager, Task { try await manager.run() })
    }
}

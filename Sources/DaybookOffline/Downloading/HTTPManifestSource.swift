// Fetches manifests over HTTP: GET {base}/cities/{id}. Spec/model/downloads.md, DL-10.

import Daybook
import Foundation

/// The wire protocol of downloads.
struct HTTPManifestSource: CityManifestSource {
    let base: URL
    let authorizer: Authorizer

    /// The greatest size of a manifest, in bytes: that of an event's line.
    static let bytesMax = 1_048_576

    func manifest(of cityId: String) async throws -> CityManifest {
        let url = try Self.url(of: cityId, base)
        let text = try await authorizer.body(
            of: url, .object, bytesMax: Self.bytesMax, "the city \(cityId)")
        return try CityManifest(json: text, cityId: cityId, from: url)
    }

    static func url(of cityId: String, _ base: URL) throws(DownloadError) -> URL {
        try ServerAddress.url(["cities", cityId], of: base, "the city's id")
    }
}

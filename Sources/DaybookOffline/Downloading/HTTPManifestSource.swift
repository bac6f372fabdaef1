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
        var request = BoundedHTTPRequest(url)
        request.set("Accept", "application/json")
        let body = GatheredBody(bytesMax: Self.bytesMax)
        let head = try await authorizer.send(request, to: body)
        if let retryError = head.retryError { throw retryError }
        guard head.status == 200 else {
            throw Authorizer.refusal(head, "the city \(cityId)")
        }
        guard head.isPlain else {
            throw DownloadError(
                .wrongContent, "the city \(cityId): the response has a content encoding")
        }
        guard let text = body.bytes else {
            throw DownloadError(
                .tooLarge, "the city's manifest has more than \(Self.bytesMax) bytes")
        }
        return try CityManifest(json: text, cityId: cityId, from: url)
    }

    static func url(of cityId: String, _ base: URL) throws(DownloadError) -> URL {
        try ServerAddress.url(["cities", cityId], of: base, "the city's id")
    }
}

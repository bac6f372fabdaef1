// Fetches manifests over HTTP: GET {base}/cities/{id}. Spec/downloads.md, DL-10.

import Foundation
import Synchronization

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// The wire protocol of downloads.
struct HTTPManifestSource: CityManifestSource {
    let base: URL
    let authorizer: Authorizer

    /// Bytes of a manifest that are read at most: what fits an event, with the log's own envelope.
    static let bytesMax = 1_048_576

    func manifest(of cityId: String) async throws -> CityManifest {
        let url = try Self.url(of: cityId, base)
        var request = URLRequest(url: url)
        request.setValue("application/json", forHTTPHeaderField: "Accept")
        let body = Body()
        let head = try await authorizer.send(request, to: body)
        if let patience = head.patience { throw patience }
        guard head.status == 200 else {
            throw Authorizer.refusal(head, "the city \(cityId)")
        }
        guard let text = body.text else {
            throw DownloadError(
                .tooLarge, "the city's manifest has more than \(Self.bytesMax) bytes")
        }
        return try CityManifest(json: text, cityId: cityId, from: url)
    }

    /// The id is one segment of the path, whatever is in it.
    static func url(of cityId: String, _ base: URL) throws(DownloadError) -> URL {
        guard CityManifest.isFetchable(base), base.query == nil, base.fragment == nil else {
            throw DownloadError(
                .refused, "the address of the server is not one of http or https alone")
        }
        let allowed = Set("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~".utf8)
        var segment = ""
        for byte in cityId.utf8 {
            segment +=
                allowed.contains(byte)
                ? String(UnicodeScalar(byte)) : "%" + String(format: "%02X", Int(byte))
        }
        var text = base.absoluteString
        while text.hasSuffix("/") { text.removeLast() }
        guard segment != ".", segment != "..", let url = URL(string: "\(text)/cities/\(segment)")
        else { throw DownloadError(.refused, "the city's id cannot stand in an address") }
        return url
    }

    /// Gathers a body up to its limit. Of one that is no success nothing is kept.
    private final class Body: AnswerTaker {
        private let content = Mutex<[UInt8]?>(nil)

        /// Nil if it was too long.
        var text: [UInt8]? { content.withLock { $0 } }

        func begin(_ head: AnswerHead) -> Bool {
            let fits = (head.contentLength ?? 0) <= HTTPManifestSource.bytesMax
            content.withLock { $0 = fits ? [] : nil }
            return head.status == 200 && fits
        }

        func take(_ bytes: [UInt8]) -> Bool {
            content.withLock { content in
                content? += bytes
                guard (content?.count ?? .max) <= HTTPManifestSource.bytesMax else {
                    content = nil
                    return false
                }
                return true
            }
        }
    }
}

// What a run has fetched of a city, and how it becomes the copy on the device. Between DownloadRun and
// CityCommands. Spec/model/downloads.md, DL-26; Spec/model/cities.md.

import Daybook
import Foundation

/// A city that was fetched, with all images that the server has.
struct DownloadedCity: Sendable {
    /// The city's data and list of images.
    var manifest: CityManifest
    /// The files of the images.
    var files: [URL: DownloadedFile]
    /// The reasons why the other images could not be fetched.
    var failures: [URL: DownloadError] = [:]
    /// True if the user requested it.
    var isExplicit: Bool

    /// Records the city in a transaction.
    ///
    /// - Throws: `StorageLimitError`; `EventError`, also for a city that the app's check does not know.
    func record(
        isExplicit: Bool, for user: String, _ references: ReferenceCheck?,
        in transaction: inout EventStore.Transaction
    ) throws {
        let fetched = manifest.images.compactMap { image -> Result<CachedImage, UnfetchedImage>? in
            let url = image.url.absoluteString
            if let file = files[image.url] {
                return .success(
                    CachedImage(
                        id: image.id, url: url, file: file.file, size: file.size, kind: image.kind,
                        width: image.width, height: image.height))
            }
            return failures[image.url].map { error in
                let reason = String(error.detail.prefix(MissingImage.reasonMax))
                return .failure(
                    UnfetchedImage(
                        image: MissingImage(id: image.id, url: url, reason: reason),
                        isGone: error.isMissing, size: image.size, sha256: image.sha256))
            }
        }
        let leftOut = manifest.leftOut.map {
            Result<CachedImage, _>.failure(UnfetchedImage(image: $0.image))
        }
        try references?.require(.city(manifest.cityId), transaction)
        try CityCommands.cache(
            json: manifest.cityData, images: leftOut + fetched, isExplicit: isExplicit, for: user,
            in: &transaction)
    }
}

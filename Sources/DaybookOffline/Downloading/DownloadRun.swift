// One job until all its files are in the file store: fetches the manifest, then the images, several at a
// time. DownloadManager starts it and records its result. Spec/model/downloads.md.

import Daybook
import Foundation

/// A city that was fetched completely.
struct DownloadedCity: Sendable {
    /// The city's data and list of images.
    var manifest: CityManifest
    /// The file of each image, in the manifest's order.
    var files: [DownloadedFile]
    /// True if the user requested it.
    var isExplicit: Bool
}

/// A run of one job.
struct DownloadRun {
    let job: DownloadJob
    let source: any CityManifestSource
    let authorizer: Authorizer
    let files: FileStore
    let fileSystem: any FileSystem
    /// The job's own folder.
    let folder: String
    let meter: DownloadMeter
    let backoff: DownloadBackoff
    let options: DownloadManager.Options
    /// Throws if a city would exceed the user's storage limit.
    let checkStorageLimit: @Sendable (DownloadedCity) async throws -> Void
    /// Called with each file that is retained in the store for this job, so that it is released later.
    let onRetainedFile: @Sendable (FileID) async -> Void

    /// Fetches the manifest and all images.
    ///
    /// - Throws: `ConnectionLost` to pause the job; `CancellationError`; any other error fails the job.
    func run() async throws -> DownloadedCity {
        try DownloadFolder.create(folder, fileSystem)
        let manifest = try await manifest()
        try await checkSizes(manifest)
        try sweep(manifest)
        meter.begin(manifest.images, stored: try storedBytes(manifest))
        let files = try await fetchAll(manifest)
        return DownloadedCity(
            manifest: manifest, files: manifest.images.compactMap { files[$0.url] },
            isExplicit: job.isExplicit)
    }

    private func manifest() async throws -> CityManifest {
        while true {
            do {
                let manifest = try await source.manifest(of: job.cityId)
                guard manifest.cityId == job.cityId else {
                    throw DownloadError(.badManifest, "the manifest is about another city")
                }
                try manifest.check()
                backoff.recordProgress()
                return manifest
            } catch {
                try Failures.throwIfPermanent(error)
                try await backoff.waitAfterFailure(error)
            }
        }
    }

    private func checkSizes(_ manifest: CityManifest) async throws {
        var total = 0
        var urls: Set<URL> = []
        for (index, image) in manifest.images.enumerated()
        where urls.insert(image.url).inserted {
            let size = image.size ?? 0
            guard size <= options.imageBytesMax else {
                throw DownloadError(
                    .tooLarge,
                    "\(CityManifest.name(ofImage: index)) has \(size) bytes; the limit is "
                        + "\(options.imageBytesMax)")
            }
            total += size
            guard total <= options.cityBytesMax else {
                throw DownloadError(
                    .tooLarge,
                    "the city's images have more than \(options.cityBytesMax) bytes, which is "
                        + "the limit")
            }
        }
        let files = manifest.images.compactMap { image in
            image.size.map { DownloadedFile(file: FileID(of: []), size: $0) }
        }
        guard files.count == manifest.images.count else { return }
        try await checkStorageLimit(
            DownloadedCity(manifest: manifest, files: files, isExplicit: job.isExplicit))
    }

    /// Deletes the files that belong to no image of the manifest.
    private func sweep(_ manifest: CityManifest) throws(DownloadError) {
        let wanted = Set(manifest.images.flatMap { PartialFile.names(of: $0.url.absoluteString) })
        let names = try onDisk { () throws(FileError) in try fileSystem.list(folder) }
        for name in names where !wanted.contains(name) {
            try PartialFile.remove(folder + "/" + name, fileSystem)
        }
    }

    /// Returns the bytes of each image that are already on the device, and their totals.
    private func storedBytes(
        _ manifest: CityManifest
    ) throws(DownloadError) -> [URL: (bytes: Int, total: Int)] {
        var images: [URL: (bytes: Int, total: Int)] = [:]
        for image in manifest.images {
            let part = try PartialFile(
                url: image.url.absoluteString, sha256: image.sha256, in: folder, fileSystem)
            let total = image.size ?? part.sidecar.total ?? 0
            let size = part.sidecar.stored == nil ? part.size : total
            images[image.url] = (total == 0 ? size : min(size, total), total)
        }
        return images
    }

    private func fetchAll(_ manifest: CityManifest) async throws -> [URL: DownloadedFile] {
        var urls: Set<URL> = []
        // In the manifest's order: the app shows the first images first.
        let images = manifest.images.enumerated().filter {
            urls.insert($0.element.url).inserted
        }
        var files: [URL: DownloadedFile] = [:]
        try await fetchInParallel(images, atOnce: options.imagesAtOnce) { item in
            let (index, image) = item
            let fetch = ImageFetch(
                image: image, name: CityManifest.name(ofImage: index), folder: folder,
                files: self.files, fileSystem: fileSystem, authorizer: authorizer, meter: meter,
                backoff: backoff, options: options)
            return (image.url, try await fetch.run())
        } receive: { (url, file) in
            await onRetainedFile(file.file)
            files[url] = file
        }
        return files
    }
}

/// Operations on the folders of partial files.
enum DownloadFolder {
    /// Creates a folder and its parents if they do not exist.
    static func create(_ path: String, _ fileSystem: any FileSystem) throws(DownloadError) {
        try onDisk { () throws(FileError) in try fileSystem.createDirectories(path) }
    }

    /// Deletes a folder with its contents, or another item of that name. A missing item is not an error. A
    /// symbolic link is removed and not followed.
    static func remove(_ path: String, _ fileSystem: any FileSystem) throws(DownloadError) {
        do throws(FileError) {
            try fileSystem.removeAll(path)
        } catch let error where error.code == .notFound {
            return
        } catch { throw DownloadError(error) }
    }
}

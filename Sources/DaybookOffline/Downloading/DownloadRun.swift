// One job until all its files are in the file store: fetches the manifest, then the images, several at a
// time. DownloadManager starts it and records its result. Spec/model/downloads.md.

import Daybook
import Foundation
import Telemetry

/// A run of one job.
struct DownloadRun {
    let job: DownloadJob
    let commands: DownloadCommands
    let source: any CityManifestSource
    let authorizer: Authorizer
    let files: FileStore
    /// The job's own folder.
    let folder: String
    let meter: DownloadMeter
    let backoff: DownloadBackoff
    let options: DownloadManager.Options
    /// The user whose storage limit applies.
    let user: String
    /// Called with each file that is retained in the store for this job, so that it is released later.
    let onRetainedFile: @Sendable (FileID) async -> Void

    private var store: EventStore { commands.store }
    var fileSystem: any FileSystem { store.environment.fileSystem }

    /// Fetches the manifest and all images that the server has.
    ///
    /// - Throws: `ConnectionLost` to pause the job; `CancellationError`; any other error fails the job.
    func run() async throws -> DownloadedCity {
        try DownloadFolder.create(folder, fileSystem)
        let manifest = try await manifest()
        for note in manifest.notes {
            Instruments().logger.warning("left out of a downloaded city: \(note)")
        }
        var city = DownloadedCity(manifest: manifest, files: [:], isExplicit: job.isExplicit)
        city.failures = try await checkSizes(manifest)
        try sweep(manifest)
        let images = manifest.images.filter { city.failures[$0.url] == nil }
        meter.begin(images, stored: try storedBytes(images))
        try await fetchAll(into: &city)
        return city
    }

    private func manifest() async throws -> CityManifest {
        let portal = PortalRecord(folder, fileSystem)
        while true {
            do {
                let manifest = try await requestManifest()
                backoff.recordProgress()
                portal.clear()
                return manifest
            } catch {
                try Failures.throwIfPermanent(error)
                if let error = error as? DownloadError, error.isPortal,
                    await portal.hasLasted(at: store.timestamp)
                {
                    throw DownloadError(
                        .badManifest, "\(error.detail), or the server has sent this for a day")
                }
                try await backoff.waitAfterFailure(error)
            }
        }
    }

    private func requestManifest() async throws -> CityManifest {
        var manifest = try await source.manifest(of: job.cityId)
        guard manifest.cityId == job.cityId else {
            throw DownloadError(.badManifest, "the manifest is about another city")
        }
        try manifest.check()
        return manifest
    }

    /// - Returns: the images that are too large by their announced sizes.
    /// - Throws: `DownloadError` and `StorageLimitError` if the city is too large.
    private func checkSizes(_ manifest: CityManifest) async throws -> [URL: DownloadError] {
        var total = 0
        var urls: Set<URL> = []
        var failures: [URL: DownloadError] = [:]
        for (index, image) in manifest.images.enumerated()
        where urls.insert(image.url).inserted {
            let size = image.size ?? 0
            guard size <= options.imageBytesMax else {
                failures[image.url] = DownloadError(
                    .tooLarge,
                    "\(manifest.name(ofImage: index)) has \(size) bytes; the limit is "
                        + "\(options.imageBytesMax)")
                continue
            }
            total += size
            guard total <= options.cityBytesMax else {
                throw DownloadError(
                    .tooLarge,
                    "the city's images have more than \(options.cityBytesMax) bytes, which is "
                        + "the limit")
            }
        }
        let images = manifest.images.filter { failures[$0.url] == nil }
        guard images.allSatisfy({ $0.size != nil }) else { return failures }
        let files = images.map {
            ($0.url, DownloadedFile(file: FileID(of: []), size: $0.size ?? 0))
        }
        try await checkStorageLimit(
            for: DownloadedCity(
                manifest: manifest, files: Dictionary(files) { a, _ in a },
                isExplicit: job.isExplicit))
        return failures
    }

    /// Checks before any fetch that a city whose sizes are all announced fits the user's storage limit.
    ///
    /// - Throws: `StorageLimitError`.
    private func checkStorageLimit(for city: DownloadedCity) async throws {
        struct Fits: Error {}
        do {
            try await store.write { transaction in
                try city.record(
                    isExplicit: city.isExplicit, for: user, commands.references, in: &transaction)
                // Aborts the transaction: nothing is recorded.
                throw Fits()
            }
        } catch is Fits {}
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
        _ list: [CityManifest.Image]
    ) throws(DownloadError) -> [URL: (bytes: Int, total: Int)] {
        var images: [URL: (bytes: Int, total: Int)] = [:]
        for image in list {
            let part = try PartialFile(
                url: image.url.absoluteString, sha256: image.sha256, in: folder, fileSystem)
            let total = image.size ?? part.sidecar.total ?? 0
            let size = part.sidecar.stored == nil ? part.size : total
            images[image.url] = (total == 0 ? size : min(size, total), total)
        }
        return images
    }

    /// Fetches the images of a city. An image that the server does not have, refuses or fails to send, or sends with
    /// another content than the manifest says, does not keep the others off the device.
    private func fetchAll(into city: inout DownloadedCity) async throws {
        let manifest = city.manifest
        var urls = Set(city.failures.keys)
        // In the manifest's order: the app shows the first images first.
        let images = manifest.images.enumerated().filter {
            urls.insert($0.element.url).inserted
        }
        let online = OnlineCheck { _ = try await requestManifest() }
        let kept = keptFiles
        try await fetchInParallel(images, atOnce: options.imagesAtOnce) { item in
            let name = manifest.name(ofImage: item.offset)
            return (item.element.url, try await fetch(item.element, name, kept, online))
        } receive: { (url, result) in
            switch result {
            case .success(let file):
                await onRetainedFile(file.file)
                city.files[url] = file
            case .failure(let error):
                _ = meter.set(url, bytes: 0, of: 0)
                city.failures[url] = error
            }
        }
    }

    /// The files of the city's copy by URL, for an automatic download of the images that the copy lacks: only
    /// those are fetched then, unless the manifest gives another checksum or size. A user who asks for a city
    /// gets its images as they are now, if they can be fetched (DL-27).
    private var keptFiles: [String: FileID] {
        guard !job.isExplicit, let copy = store.view(CitiesView.self).offline(job.cityId),
            !copy.missingImages.isEmpty
        else { return [:] }
        return Dictionary(copy.images.map { ($0.url, $0.file) }) { a, _ in a }
    }

    /// - Returns: the file, or the error of an image that the server does not have or send.
    private func fetch(
        _ image: CityManifest.Image, _ name: String, _ kept: [String: FileID],
        _ online: OnlineCheck
    ) async throws -> Result<DownloadedFile, DownloadError> {
        let fetch = ImageFetch(
            job: self, image: image, name: name, kept: kept[image.url.absoluteString],
            online: online)
        do { return .success(try await fetch.run()) } catch let error as DownloadError {
            switch error.code {
            case .refused, .wrongContent, .unavailable: return .failure(error)
            case .unauthorized:
                // If the manifest arrives with the same token, the server refuses the image alone.
                guard try await online.isOnline() else { throw ConnectionLost() }
                return .failure(error)
            case .badManifest, .tooLarge, .noSpace, .io: throw error
            }
        }
    }
}

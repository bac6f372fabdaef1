// One job from its beginning to where everything is in the store: the manifest, then the images, so
// many at a time. Started by DownloadManager, which records what came of it. Spec/model/downloads.md.

import Daybook
import Foundation

/// A city of which everything was fetched.
struct DownloadedCity: Sendable {
    /// Its data and images.
    var manifest: CityManifest
    /// The file of each image, in the manifest's order.
    var files: [DownloadedFile]
    /// Whether the user asked for it.
    var isExplicit: Bool
}

/// The work on one job.
struct DownloadRun {
    let job: DownloadJob
    let source: any CityManifestSource
    let authorizer: Authorizer
    let files: FileStore
    let fileSystem: any FileSystem
    /// The job's own folder.
    let folder: String
    let meter: DownloadMeter
    let pace: DownloadPace
    let options: DownloadManager.Options
    /// Throws where a city would not fit what the user allows.
    let checkRoom: @Sendable (DownloadedCity) async throws -> Void
    /// Hears of each file that is held in the store for this job, to let go of it one day.
    let keep: @Sendable (FileID) async -> Void

    /// Fetches everything.
    ///
    /// - Throws: `ConnectionLost` to pause the job; `CancellationError`; anything else is what the
    ///   job fails with.
    func run() async throws -> DownloadedCity {
        try DownloadFolder.create(folder, fileSystem)
        let manifest = try await manifest()
        try await checkSizes(manifest)
        try sweep(manifest)
        meter.begin(manifest.images, there: try stock(manifest))
        let found = try await fetchAll(manifest)
        return DownloadedCity(
            manifest: manifest, files: manifest.images.compactMap { found[$0.url] },
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
                pace.progressed()
                return manifest
            } catch {
                try Failures.check(error)
                try await pace.failed(error)
            }
        }
    }

    private func checkSizes(_ manifest: CityManifest) async throws {
        var total = 0
        for (_, size) in Dictionary(
            manifest.images.map { ($0.url, $0.size ?? 0) }, uniquingKeysWith: { a, _ in a })
        {
            guard size <= options.imageBytesMax else {
                throw DownloadError(
                    .tooLarge,
                    "an image of \(size) bytes; at most \(options.imageBytesMax) are taken")
            }
            total += size
            guard total <= options.cityBytesMax else {
                throw DownloadError(
                    .tooLarge,
                    "a city of more than \(options.cityBytesMax) bytes, which is the most that is "
                        + "taken")
            }
        }
        let files = manifest.images.compactMap { image in
            image.size.map { DownloadedFile(file: FileID(of: []), size: $0) }
        }
        guard files.count == manifest.images.count else { return }
        try await checkRoom(
            DownloadedCity(manifest: manifest, files: files, isExplicit: job.isExplicit))
    }

    /// Deletes what belongs to no image of the manifest any more.
    private func sweep(_ manifest: CityManifest) throws(DownloadError) {
        let wanted = Set(manifest.images.flatMap { PartialFile.names(of: $0.url.absoluteString) })
        let names = try onDisk { () throws(FileError) in try fileSystem.list(folder) }
        for name in names where !wanted.contains(name) {
            try PartialFile.remove(folder + "/" + name, fileSystem)
        }
    }

    /// What is there already: bytes, and how many there will be.
    private func stock(
        _ manifest: CityManifest
    ) throws(DownloadError) -> [URL: (bytes: Int, total: Int)] {
        var stock: [URL: (bytes: Int, total: Int)] = [:]
        for image in manifest.images {
            let part = try PartialFile(
                url: image.url.absoluteString, sha256: image.sha256, in: folder, fileSystem)
            let total = image.size ?? part.sidecar.total ?? 0
            let size = part.sidecar.stored == nil ? part.size : total
            stock[image.url] = (total == 0 ? size : min(size, total), total)
        }
        return stock
    }

    private func fetchAll(_ manifest: CityManifest) async throws -> [URL: DownloadedFile] {
        var seen: Set<URL> = []
        // In the manifest's order: what stands first is seen first.
        let images = manifest.images.filter { seen.insert($0.url).inserted }
        var found: [URL: DownloadedFile] = [:]
        try await fetchInParallel(images, atOnce: options.imagesAtOnce) { image in
            let fetch = ImageFetch(
                image: image, folder: folder, files: files, fileSystem: fileSystem,
                authorizer: authorizer, meter: meter, pace: pace, options: options)
            return (image.url, try await fetch.run())
        } receive: { (url, file) in
            await keep(file.file)
            found[url] = file
        }
        return found
    }
}

/// Folders in which partial files lie.
enum DownloadFolder {
    /// Makes a folder if there is none; its parents, too.
    static func create(_ path: String, _ fileSystem: any FileSystem) throws(DownloadError) {
        try onDisk { () throws(FileError) in try fileSystem.createDirectories(path) }
    }

    /// Deletes a folder with all that is in it, or what else stands in its place; no error where there
    /// is nothing. A link is removed and not followed.
    static func remove(_ path: String, _ fileSystem: any FileSystem) throws(DownloadError) {
        do throws(FileError) {
            try fileSystem.removeAll(path)
        } catch let error where error.code == .notFound {
            return
        } catch { throw DownloadError(error) }
    }
}

// Fetches one image: requests the missing bytes until the image is complete, then has it verified and
// stored. Part of a DownloadRun. Spec/model/downloads.md, DL-13 to DL-18.

import Daybook
import Foundation

/// A downloaded file.
struct DownloadedFile: Hashable, Sendable {
    /// The file in the store.
    var file: FileID
    /// The size in bytes.
    var size: Int
}

/// The fetch of one image.
struct ImageFetch {
    let job: DownloadRun
    let image: CityManifest.Image
    /// The name of the image, for messages: the manifest's member.
    let name: String
    /// The file that the city's present copy has for the URL, if the copy lacks other images.
    let kept: FileID?
    let online: OnlineCheck

    /// The number of times that an image with wrong content is fetched from the start again.
    static let restartsMax = 2
    private static let redirectionsMax = 5

    /// Whether a redirect may lead to this machine or its network.
    private var allowsLocal: Bool {
        (job.authorizer.origin ?? HTTPOrigin(image.url))?.isLocal ?? false
    }

    /// Fetches the image and stores it. The store retains the file until the caller releases it.
    ///
    /// - Throws: `DownloadError`; `ConnectionLost`; `FileStoreError`; `LogError`;
    ///   `CancellationError`.
    func run() async throws -> DownloadedFile {
        var part = try PartialFile(
            url: image.url.absoluteString, sha256: image.sha256, in: job.folder, job.fileSystem)
        if part.size == 0,
            let known = image.sha256 ?? part.sidecar.stored ?? part.sidecar.sha256 ?? kept,
            let file = try await storedFile(known)
        {
            job.meter.finish(image.url, bytes: file.size)
            return file
        }
        // The stored file does not match the manifest any more.
        if part.sidecar.stored != nil { try part.discard() }
        if let total = image.size ?? part.sidecar.total, part.size > total { try part.discard() }
        let writer = ImageWriter(
            part, image, name: name, bytesMax: job.options.imageBytesMax,
            allowsLocal: allowsLocal, job.meter, job.backoff)
        do {
            let file = try await fetch(writer)
            job.meter.finish(image.url, bytes: file.size)
            return file
        } catch {
            // Keeps the fetched bytes for the next run, also after a power cut.
            try? writer.withPart { (part) throws(DownloadError) in
                if part.sidecar.sha256 == nil { try part.makeDurable() }
            }
            throw error
        }
    }

    /// Retains the file if the store has it and it has the size that the manifest states; else nil.
    private func storedFile(_ id: FileID) async throws -> DownloadedFile? {
        guard await job.files.retain(id) else { return nil }
        let path = job.files.path(of: id)
        do {
            let size = try onDisk { () throws(FileError) in
                try job.fileSystem.open(path, .read).size()
            }
            if image.size ?? size == size { return DownloadedFile(file: id, size: size) }
            await job.files.release([id])
            return nil
        } catch {
            await job.files.release([id])
            throw error
        }
    }

    /// The failures of this image without progress between them.
    private struct Row {
        var failures = 0
        /// The time of the last.
        var last: ContinuousClock.Instant?
    }

    private func fetch(_ writer: ImageWriter) async throws -> DownloadedFile {
        var failures = 0
        var row = Row()
        var isComplete = writer.withPart { $0.size > 0 } && writer.isComplete ?? false
        while true {
            if isComplete {
                do {
                    try checkContent(writer)
                    let file = try await store(writer)
                    job.backoff.recordProgress()
                    online.recordAnswer(of: image.url)
                    return file
                } catch let error as FileStoreError
                    where [.damaged, .missing].contains(error.code)
                {
                    try restart(
                        writer,
                        error.code == .damaged
                            ? "the checksum of \(name) is wrong"
                            : "the partial file of \(name) was deleted",
                        &failures)
                } catch let error as NotContent {
                    try writer.discard()
                    try await waitForServer(error.problem)
                }
            }
            guard !online.isSilent(image.url) else {
                throw DownloadError(
                    .unavailable,
                    "\(name) was not requested: its server has sent none of several images")
            }
            do {
                isComplete = try await advance(writer, isRestart: failures > 0, &row)
            } catch let error as WrongContent {
                isComplete = false
                try restart(writer, error.problem, &failures)
            }
        }
    }

    /// Sends one request, and waits after a failure.
    ///
    /// - Returns: true if the image is complete.
    /// - Throws: `WrongContent`; as `waitAfterFailure` and `waitForServer`; permanent failures.
    private func advance(
        _ writer: ImageWriter, isRestart: Bool, _ row: inout Row
    ) async throws -> Bool {
        let sizeBefore = writer.sizeMax
        let start = ContinuousClock.now
        let result = try await attempt(writer, isRestart: isRestart)
        let hasGrown = writer.sizeMax - sizeBefore >= DownloadBackoff.progressBytes
        if hasGrown { row = Row() }
        switch result {
        case .complete: return true
        // A server may send any number of bytes per response, but fewer than `progressBytes` count as a failure.
        case .ended where hasGrown: break
        case .ended:
            try await waitAfterFailure(
                DownloadError(.unavailable, "a response with \(name) was incomplete"), &row,
                from: start)
        case .failed(let error): try await waitAfterFailure(error, &row, from: start)
        case .portal(let problem): try await waitForServer(problem)
        }
        return false
    }

    /// Counts a transient failure and waits before the next attempt. The image is given up after `failuresMax`
    /// failures in a row, if the server itself can be reached: it must not keep the rest of the city off the
    /// device. The first failure is enough while no image of its server has arrived since one was given up.
    ///
    /// - Parameter start: the time of the request.
    /// - Throws: `DownloadError` for an image that is given up; as `DownloadBackoff.waitAfterFailure`.
    private func waitAfterFailure(
        _ error: any Error, _ row: inout Row, from start: ContinuousClock.Instant
    ) async throws {
        let previous = row.last ?? start
        row = Row(failures: row.failures + 1, last: .now)
        let isLast = row.failures >= job.options.failuresMax
        if isLast || online.hasGivenUp(image.url) {
            if try await online.isOnline(since: isLast ? previous : start) {
                online.giveUp(image.url)
                throw Failures.ofImage(error, name)
            }
            if isLast { throw ConnectionLost() }
        }
        do { try await job.backoff.waitAfterFailure(error) } catch is ConnectionLost {
            // The requests of all images together have failed as often: a dead connection, or bad images?
            guard try await online.isOnline(since: previous) else { throw ConnectionLost() }
            job.backoff.recordProgress()
            try await job.backoff.waitAfterFailure(error)
        }
    }

    /// The result of a request.
    private enum Attempt {
        /// The image is complete.
        case complete
        /// The response ended normally, and bytes are missing.
        case ended
        /// A transient failure.
        case failed(any Error)
        /// The response was not the server's, or not an image.
        case portal(String)
    }

    private struct WrongContent: Error { var problem: String }
    private struct NotContent: Error { var problem: String }

    /// Checks that the bytes may be an image, whatever the head of the response says.
    ///
    /// - Throws: `NotContent`; `DownloadError`.
    private func checkContent(_ writer: ImageWriter) throws {
        let start = try writer.withPart { (part) throws(DownloadError) in
            try part.read(WebPage.prefixBytes)
        }
        guard let fault = WebPage.fault(of: start) else { return }
        let isMeant = start.isEmpty && (image.size == 0 || image.sha256 == FileID(of: []))
        guard !isMeant else { return }
        throw NotContent(
            problem: start.isEmpty ? "\(name) \(fault)" : "\(name): the response \(fault)")
    }

    /// Waits for the end of a portal. If the server itself can be reached, its answer counts: it does not have
    /// the image.
    ///
    /// - Throws: `DownloadError`; as `DownloadBackoff.waitAfterFailure`.
    private func waitForServer(_ problem: String) async throws {
        guard try await !online.isOnline() else { throw DownloadError(.wrongContent, problem) }
        try await job.backoff.waitAfterFailure(DownloadError(.unavailable, problem))
    }

    private func restart(
        _ writer: ImageWriter, _ problem: String, _ failures: inout Int
    ) throws(DownloadError) {
        failures += 1
        try writer.discard()
        guard failures <= Self.restartsMax else {
            throw DownloadError(
                .wrongContent, "\(problem), also in attempt \(failures)")
        }
    }

    private func store(_ writer: ImageWriter) async throws -> DownloadedFile {
        let (path, size, sha256) = writer.withPart { part in
            part.close()
            return (part.path, part.size, part.sidecar.sha256)
        }
        let file = try await job.files.storeRetained(moving: path, expecting: sha256)
        do {
            try writer.withPart { (part) throws(DownloadError) in try part.recordMove(to: file) }
        } catch {
            await job.files.release([file])
            throw error
        }
        return DownloadedFile(file: file, size: size)
    }

    /// Sends one request and follows its redirects.
    ///
    /// - Throws: `WrongContent`; permanent failures.
    private func attempt(_ writer: ImageWriter, isRestart: Bool) async throws -> Attempt {
        var url = image.url
        for hop in 0...Self.redirectionsMax {
            try Task.checkCancellation()
            var request = BoundedHTTPRequest(url)
            request.set("Accept", "image/*, */*;q=0.5")
            if isRestart { request.set("Cache-Control", "no-cache") }
            if let (offset, validator) = writer.prepareRequest(to: url) {
                request.set("Range", "bytes=\(offset)-")
                if let validator { request.set("If-Range", validator) }
            }
            // The manifest may name any address; a redirect may not.
            request.refusesLocalAddresses = hop > 0 && !allowsLocal
            var failure: (any Error)?
            var head: BoundedHTTPResponseHead?
            do {
                head = try await job.authorizer.send(request, isRedirected: hop > 0, to: writer)
            } catch let error as TransportError where error.code == .localAddress {
                return .portal("\(name): a redirect to \(error.description)")
            } catch {
                try Failures.throwIfPermanent(error, of: name)
                failure = error
            }
            let answer = try writer.outcome()
            switch answer {
            case .redirected(let next): url = next
            case .wrong(let problem): throw WrongContent(problem: problem)
            case .refused(let error):
                // The response was to the old token; its renewal, or the request after it, has failed.
                if let failure { return .failed(failure) }
                throw error
            case .later(let error): return .failed(error)
            case .portal(let problem): return .portal(problem)
            case .complete: return .complete
            case .append, .restart:
                // All bytes may have arrived although the connection broke. With an unknown total, the
                // end of a 200 response completes the image; the end of a 206 response does not.
                if writer.isComplete
                    ?? (answer == .restart && head.map(writer.confirmEnd) ?? false)
                {
                    return .complete
                }
                if let failure { return .failed(failure) }
                if answer == .restart, writer.isShort {
                    throw WrongContent(problem: "\(name) is shorter than announced")
                }
                return .ended
            case nil:
                return .failed(
                    failure ?? DownloadError(.unavailable, "\(name): the server does not answer"))
            }
        }
        throw DownloadError(.refused, "\(name): more than \(Self.redirectionsMax) redirects")
    }
}

/// Classifies the errors of a request.
enum Failures {
    /// Throws for a permanent error and returns for a transient one.
    ///
    /// - Parameter resource: the name of what was requested, for the message.
    /// - Throws: `CancellationError`; `DownloadError` for a permanent error.
    static func throwIfPermanent(_ error: any Error, of resource: String? = nil) throws {
        if Task.isCancelled || error is CancellationError { throw CancellationError() }
        switch error {
        case let error as TransportError where !error.isTransient:
            throw DownloadError(
                [.badToken, .tokenInClear].contains(error.code) ? .unauthorized : .refused,
                (resource.map { "\($0): " } ?? "") + error.description)
        case let error as DownloadError where error.code != .unavailable: throw error
        default: break
        }
    }

    /// The reason why an image was given up.
    static func ofImage(_ error: any Error, _ name: String) -> DownloadError {
        let reason =
            switch error {
            case let error as DownloadError: error.detail
            case let error as TransportError: error.description
            default: "the connection failed"
            }
        return DownloadError(
            .unavailable, reason.contains(name) ? reason : "\(name): \(reason)")
    }
}

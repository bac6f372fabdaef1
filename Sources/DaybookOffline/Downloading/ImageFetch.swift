// Fetches one image: asks for what is missing until all is there, has it checked and stored. Part of
// a DownloadRun. Spec/model/downloads.md, DL-13 to DL-18.

import Daybook
import Foundation

/// A file that was downloaded.
struct DownloadedFile: Hashable, Sendable {
    /// The file in the store.
    var file: FileID
    /// Bytes.
    var size: Int
}

/// One image on its way.
struct ImageFetch {
    let image: CityManifest.Image
    let folder: String
    let files: FileStore
    let fileSystem: any FileSystem
    let authorizer: Authorizer
    let meter: DownloadMeter
    let pace: DownloadPace
    let options: DownloadManager.Options

    /// How often an image is fetched anew because its content was wrong.
    static let anewMax = 2
    private static let redirectionsMax = 5

    /// Fetches the image and stores it; it is held there until it is released.
    ///
    /// - Throws: `DownloadError`; `ConnectionLost`; `FileStoreError`; `LogError`;
    ///   `CancellationError`.
    func run() async throws -> DownloadedFile {
        var part = try PartialFile(
            url: image.url.absoluteString, sha256: image.sha256, in: folder, fileSystem)
        if part.size == 0, let known = image.sha256 ?? part.sidecar.stored ?? part.sidecar.sha256,
            let file = try await stored(known)
        {
            meter.finish(image.url, bytes: file.size)
            return file
        }
        // What it was then is not what it is now.
        if part.sidecar.stored != nil { try part.discard() }
        if let total = image.size ?? part.sidecar.total, part.size > total { try part.discard() }
        let writer = ImageWriter(
            part, image, bytesMax: options.imageBytesMax, meter, pace)
        do {
            let file = try await fetch(writer)
            meter.finish(image.url, bytes: file.size)
            return file
        } catch {
            // What was fetched is not fetched again.
            try? writer.withPart { (part) throws(DownloadError) in
                if part.sidecar.sha256 == nil { try part.settle() }
            }
            throw error
        }
    }

    /// The file, if the store has it already and it is as long as the manifest says now.
    private func stored(_ id: FileID) async throws -> DownloadedFile? {
        guard await files.hold(id) else { return nil }
        let path = files.path(of: id)
        do {
            let size = try onDisk { () throws(FileError) in
                try fileSystem.open(path, .read).size()
            }
            if image.size ?? size == size { return DownloadedFile(file: id, size: size) }
            await files.release([id])
            return nil
        } catch {
            await files.release([id])
            throw error
        }
    }

    private func fetch(_ writer: ImageWriter) async throws -> DownloadedFile {
        var mistakes = 0
        var isWhole = writer.withPart { $0.size > 0 } && writer.isWhole ?? false
        while true {
            if isWhole {
                do {
                    let file = try await store(writer)
                    pace.progressed()
                    return file
                } catch let error as FileStoreError
                    where [.damaged, .missing].contains(error.code)
                {
                    try anew(
                        writer,
                        error.code == .damaged
                            ? "an image's checksum is wrong" : "a part was deleted", &mistakes)
                }
            }
            isWhole = false
            let before = writer.withPart { $0.size }
            do {
                switch try await attempt(writer, isAnew: mistakes > 0) {
                case .whole: isWhole = true
                // A server may give as much at a time as it likes, if it is not next to nothing.
                case .ended
                where writer.withPart({ $0.size }) - before >= DownloadPace.progressBytes: break
                case .ended:
                    try await pace.failed(DownloadError(.unavailable, "an image came in part"))
                case .failed(let error): try await pace.failed(error)
                }
            } catch let error as WrongContent {
                try anew(writer, error.problem, &mistakes)
            }
        }
    }

    /// What became of a request.
    private enum Attempt {
        /// The image is whole.
        case whole
        /// The answer ended in good order, and there is more to come.
        case ended
        /// It may go well later.
        case failed(any Error)
    }

    private struct WrongContent: Error { var problem: String }

    private func anew(
        _ writer: ImageWriter, _ problem: String, _ mistakes: inout Int
    ) throws(DownloadError) {
        mistakes += 1
        try writer.discard()
        guard mistakes <= Self.anewMax else {
            throw DownloadError(
                .wrongContent, "\(problem), also after it was fetched \(mistakes) times")
        }
    }

    private func store(_ writer: ImageWriter) async throws -> DownloadedFile {
        let (path, size, sha256) = writer.withPart { part in
            part.close()
            return (part.path, part.size, part.sidecar.sha256)
        }
        let file = try await files.add(moving: path, expecting: sha256)
        do {
            try writer.withPart { (part) throws(DownloadError) in try part.moved(to: file) }
        } catch {
            await files.release([file])
            throw error
        }
        return DownloadedFile(file: file, size: size)
    }

    /// One request, and where it is led on to.
    ///
    /// - Throws: `WrongContent`; what does not get better by waiting.
    private func attempt(_ writer: ImageWriter, isAnew: Bool) async throws -> Attempt {
        var url = image.url
        for hop in 0...Self.redirectionsMax {
            try Task.checkCancellation()
            var request = BoundedHTTPRequest(url)
            request.set("Accept", "image/*, */*;q=0.5")
            if isAnew { request.set("Cache-Control", "no-cache") }
            if let (offset, validator) = writer.ask(at: url) {
                request.set("Range", "bytes=\(offset)-")
                if let validator { request.set("If-Range", validator) }
            }
            var broken: (any Error)?
            do {
                _ = try await authorizer.send(request, isRedirected: hop > 0, to: writer)
            } catch {
                try Failures.check(error)
                broken = error
            }
            let answer = try writer.outcome()
            switch answer {
            case .elsewhere(let next): url = next
            case .wrong(let problem): throw WrongContent(problem: problem)
            case .refused(let error):
                // It was about the old token; getting a new one, or asking with it, has failed.
                if let broken { return .failed(broken) }
                throw error
            case .later(let error): return .failed(error)
            case .complete: return .whole
            case .append, .restart:
                // All bytes may be there although the connection broke. Where nobody has said how
                // many there are, the end of the whole is the end; that of a part is not.
                if writer.isWhole ?? (broken == nil && answer == .restart) { return .whole }
                if let broken { return .failed(broken) }
                if answer == .restart, writer.isShort {
                    throw WrongContent(problem: "an image is shorter than announced")
                }
                return .ended
            case nil:
                return .failed(
                    broken ?? DownloadError(.unavailable, "an image: the server does not answer"))
            }
        }
        throw DownloadError(.refused, "an image: the server leads from one place to the next")
    }
}

/// Errors of a request.
enum Failures {
    /// Lets pass what may go well later.
    ///
    /// - Throws: `CancellationError`; `DownloadError` for what does not get better by waiting.
    static func check(_ error: any Error) throws {
        if Task.isCancelled || error is CancellationError { throw CancellationError() }
        switch error {
        case let error as TransportError where !error.isTransient:
            throw DownloadError(
                [.badToken, .tokenInClear].contains(error.code) ? .unauthorized : .refused,
                error.description)
        case let error as DownloadError where error.code != .unavailable: throw error
        default: break
        }
    }
}

// A partly fetched image: its bytes so far, and a sidecar file that identifies the complete content, so
// that the fetch can continue after a kill. Spec/model/downloads.md, DL-14, DL-15.

import Daybook
import Foundation

/// The bytes of an image so far. Not thread-safe: only the fetch of the image uses it.
struct PartialFile {
    /// The known properties of the complete content.
    struct Sidecar: Hashable {
        var url: String
        /// A strong entity tag, with its quotation marks.
        var etag: String?
        /// A `Last-Modified` date that is a strong validator.
        var lastModified: String?
        /// The size of the complete content according to the server, in bytes.
        var total: Int?
        /// The SHA-256 of the complete content according to the manifest or the server.
        var sha256: FileID?
        /// The number of bytes that survive a power cut.
        var durable = 0
        /// The file's id in the store, after its move there.
        var stored: FileID?

        /// The validator for `If-Range`: the remaining bytes fit only if the server still has this version.
        var validator: String? { etag ?? lastModified }
    }

    let path: String
    private let directory: String
    private let fileSystem: any FileSystem
    /// The content's SHA-256 according to the manifest.
    private let declared: FileID?
    private var file: (any File)?
    private(set) var size = 0
    var sidecar: Sidecar

    private static let suffix = ".part"
    private static let sidecarSuffix = ".json"
    /// The greatest size of a sidecar in bytes: a URL and two headers fit.
    private static let sidecarBytesMax = 65_536
    /// The number of bytes per sync of an image without a checksum, which could not detect lost bytes.
    private static let durableStep = 262_144

    /// Opens the partial file of an address, or begins with an empty one.
    ///
    /// - Parameters:
    ///   - url: the image's address.
    ///   - sha256: the content's SHA-256 according to the manifest.
    ///   - directory: the job's folder.
    init(
        url: String, sha256: FileID?, in directory: String, _ fileSystem: any FileSystem
    ) throws(DownloadError) {
        self.directory = directory
        self.fileSystem = fileSystem
        declared = sha256
        path = directory + "/" + Self.name(of: url) + Self.suffix
        sidecar = Sidecar(url: url)
        sidecar.sha256 = sha256
        guard let known = readSidecar(), known.url == url,
            sha256 == nil || known.sha256 == nil || known.sha256 == sha256
        else {
            try discard()
            return
        }
        sidecar = known
        sidecar.sha256 = sha256 ?? known.sha256
        let fileSize: Int
        do throws(FileError) {
            let file = try fileSystem.open(path, .readWrite)
            fileSize = try file.size()
            self.file = file
        } catch {
            // The file may have been moved to the store.
            guard error.code == .notFound else { throw DownloadError(error) }
            return
        }
        // A power cut may have replaced unsynced bytes by zeros. Only a checksum detects that.
        size = sidecar.sha256 == nil ? min(fileSize, sidecar.durable) : fileSize
        if size < fileSize { try truncateFile() }
    }

    /// Returns the file name of an address, without suffix.
    static func name(of url: String) -> String {
        String(FileID(of: Array(url.utf8)).description.prefix(32))
    }

    /// Returns the names of an address's partial file and sidecar.
    static func names(of url: String) -> [String] {
        [name(of: url) + suffix, name(of: url) + sidecarSuffix]
    }

    /// True if the next request can ask for the remaining bytes only.
    var canResume: Bool {
        size > 0 && (sidecar.validator != nil || sidecar.sha256 != nil)
    }

    // MARK: Writing

    /// Deletes the bytes so far and begins with the content that a `200` response announces.
    mutating func restart(_ head: BoundedHTTPResponseHead) throws(DownloadError) {
        size = 0
        try truncateFile()
        sidecar.etag = Self.strongTag(head["ETag"])
        sidecar.lastModified = Self.strongDate(head)
        sidecar.total = head.contentLength
        sidecar.sha256 = declared ?? ContentDigest.sha256(head)
        sidecar.durable = 0
        sidecar.stored = nil
        try writeSidecar()
    }

    /// Sets the size of the complete content if it was unknown.
    mutating func setTotalIfUnknown(_ total: Int?) { sidecar.total = sidecar.total ?? total }

    /// Appends bytes to the file.
    mutating func append(_ bytes: [UInt8]) throws(DownloadError) {
        let file = try openIfNeeded()
        let offset = size
        try onDisk { () throws(FileError) in try file.write(bytes, at: offset) }
        size += bytes.count
        if sidecar.sha256 == nil, size - sidecar.durable >= Self.durableStep { try makeDurable() }
    }

    /// Returns the first bytes of the file.
    mutating func read(_ count: Int) throws(DownloadError) -> [UInt8] {
        guard size > 0 else { return [] }
        let (file, count) = (try openIfNeeded(), min(count, size))
        return try onDisk { () throws(FileError) in try file.read(at: 0, count: count) }
    }

    /// Syncs the bytes so far and records their number in the sidecar.
    mutating func makeDurable() throws(DownloadError) {
        guard let file, sidecar.durable != size else { return }
        try onDisk { () throws(FileError) in try file.sync() }
        sidecar.durable = size
        try writeSidecar()
    }

    /// Records that the file was moved to the store.
    mutating func recordMove(to stored: FileID) throws(DownloadError) {
        file = nil
        size = 0
        sidecar.stored = stored
        try writeSidecar()
    }

    /// Deletes the file and its sidecar.
    mutating func discard() throws(DownloadError) {
        file = nil
        size = 0
        sidecar = Sidecar(url: sidecar.url, sha256: declared)
        for name in Self.names(of: sidecar.url) {
            try Self.remove(directory + "/" + name, fileSystem)
        }
    }

    /// Releases the file descriptor.
    mutating func close() { file = nil }

    static func remove(_ path: String, _ fileSystem: any FileSystem) throws(DownloadError) {
        do throws(FileError) {
            try fileSystem.remove(path)
        } catch let error where error.code == .notFound {
            return
        } catch { throw DownloadError(error) }
    }

    private mutating func openIfNeeded() throws(DownloadError) -> any File {
        if let file { return file }
        let (fileSystem, path) = (fileSystem, path)
        let file = try creatingFolder { () throws(FileError) in
            try fileSystem.open(path, .createIfMissing)
        }
        self.file = file
        return file
    }

    /// Runs an operation in the job's folder, and creates the folder if the system has deleted it.
    private func creatingFolder<T>(_ body: () throws(FileError) -> T) throws(DownloadError) -> T {
        do throws(FileError) { return try body() } catch {
            guard error.code == .notFound else { throw DownloadError(error) }
            try DownloadFolder.create(directory, fileSystem)
            return try onDisk(body)
        }
    }

    private mutating func truncateFile() throws(DownloadError) {
        let file = try openIfNeeded()
        let size = size
        try onDisk { () throws(FileError) in try file.truncate(to: size) }
    }

    // MARK: The sidecar

    private var sidecarPath: String {
        directory + "/" + Self.name(of: sidecar.url) + Self.sidecarSuffix
    }

    /// Returns the ids of the images that were moved from a job's folder to the store.
    static func stored(in directory: String, _ fileSystem: any FileSystem) -> [FileID] {
        ((try? fileSystem.list(directory)) ?? []).filter { $0.hasSuffix(sidecarSuffix) }
            .compactMap { readSidecar(directory + "/" + $0, fileSystem)?.stored }
    }

    private func readSidecar() -> Sidecar? { Self.readSidecar(sidecarPath, fileSystem) }

    private static func readSidecar(_ path: String, _ fileSystem: any FileSystem) -> Sidecar? {
        guard let file = try? fileSystem.open(path, .read),
            let bytes = try? file.read(at: 0, count: sidecarBytesMax),
            let fields = try? JSONFields(bytes), let url = try? fields.string("url")
        else { return nil }
        var sidecar = Sidecar(url: url)
        sidecar.etag = try? fields.string("etag")
        sidecar.lastModified = try? fields.string("lastModified")
        sidecar.total = try? fields.count("total")
        sidecar.sha256 = (try? fields.string("sha256")).flatMap(FileID.init)
        sidecar.durable = (try? fields.count("durable")) ?? 0
        sidecar.stored = (try? fields.string("stored")).flatMap(FileID.init)
        return sidecar
    }

    /// Writes to a temporary name and renames it: a kill leaves the old sidecar or the new one.
    private func writeSidecar() throws(DownloadError) {
        var writer = JSONObjectWriter()
        writer.appendMember("url", sidecar.url)
        if let etag = sidecar.etag { writer.appendMember("etag", etag) }
        if let date = sidecar.lastModified { writer.appendMember("lastModified", date) }
        if let total = sidecar.total { writer.appendMember("total", total) }
        if let sha256 = sidecar.sha256 { writer.appendMember("sha256", sha256.description) }
        writer.appendMember("durable", sidecar.durable)
        if let stored = sidecar.stored { writer.appendMember("stored", stored.description) }
        let bytes = writer.finished()
        let (path, new, fileSystem) = (sidecarPath, sidecarPath + ".new", fileSystem)
        try creatingFolder { () throws(FileError) in
            do throws(FileError) {
                let file = try fileSystem.open(new, .createIfMissing)
                try file.truncate(to: 0)
                try file.write(bytes, at: 0)
                try file.sync()
                try fileSystem.rename(new, to: path)
            } catch {
                try? fileSystem.remove(new)
                throw error
            }
        }
    }

    // MARK: Validators

    /// Returns a strong entity tag (RFC 9110, 8.8.3); nil for a weak or invalid one.
    static func strongTag(_ tag: String?) -> String? {
        guard let tag, (2...1_024).contains(tag.utf8.count), tag.hasPrefix("\""),
            tag.hasSuffix("\""),
            tag.utf8.dropFirst().dropLast().allSatisfy({ 0x21...0x7E ~= $0 && $0 != 0x22 })
        else { return nil }
        return tag
    }

    /// Returns a `Last-Modified` date that is a strong validator (RFC 9110, 8.8.2.2): at least one second
    /// before the response's `Date`, so that no later change has the same date.
    static func strongDate(_ head: BoundedHTTPResponseHead) -> String? {
        guard let text = head["Last-Modified"], let changed = HTTPDate.parse(text),
            let now = head["Date"].flatMap(HTTPDate.parse), now - changed >= 1_000
        else { return nil }
        return text
    }
}

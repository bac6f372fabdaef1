// An image that is being fetched: the bytes so far, and beside them in a small file what they are the
// beginning of, so that fetching can go on after a kill. Spec/model/downloads.md, DL-14, DL-15.

import Daybook
import Foundation

/// The bytes of an image so far. Not thread-safe: who fetches the image has it alone.
struct PartialFile {
    /// What is known of the content that the bytes are the beginning of.
    struct Sidecar: Hashable {
        var url: String
        /// A strong entity tag, with its quotation marks.
        var etag: String?
        /// A date that is as good as one.
        var lastModified: String?
        /// Bytes of the whole, as the server said.
        var total: Int?
        /// The SHA-256 of the whole, as the manifest or the server said.
        var sha256: FileID?
        /// Bytes that would survive a power cut.
        var durable = 0
        /// The file in the store, once it is there.
        var stored: FileID?

        /// What a server must still hold for the rest to fit.
        var validator: String? { etag ?? lastModified }
    }

    let path: String
    private let directory: String
    private let fileSystem: any FileSystem
    /// What the manifest says of the content.
    private let declared: FileID?
    private var file: (any File)?
    private(set) var size = 0
    var sidecar: Sidecar

    private static let suffix = ".part"
    private static let sidecarSuffix = ".json"
    /// A sidecar has a URL and two headers; more is none.
    private static let sidecarBytesMax = 65_536
    /// Without a checksum that would tell, bytes are made durable in steps of this.
    private static let durableStep = 262_144

    /// Takes up what is there for an address, or begins with nothing.
    ///
    /// - Parameters:
    ///   - url: where the image is.
    ///   - sha256: what the manifest says of its content.
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
        let there: Int
        do throws(FileError) {
            let file = try fileSystem.open(path, .readWrite)
            there = try file.size()
            self.file = file
        } catch {
            // It may be in the store already.
            guard error.code == .notFound else { throw DownloadError(error) }
            return
        }
        // A power cut may have left zeros where bytes were. A checksum would tell.
        size = sidecar.sha256 == nil ? min(there, sidecar.durable) : there
        if size < there { try cut() }
    }

    /// The files of an address have names of their own.
    static func name(of url: String) -> String {
        String(FileID(of: Array(url.utf8)).description.prefix(32))
    }

    /// The names that belong to an address.
    static func names(of url: String) -> [String] {
        [name(of: url) + suffix, name(of: url) + sidecarSuffix]
    }

    /// Whether there is something to go on from.
    var canResume: Bool {
        size > 0 && (sidecar.validator != nil || sidecar.sha256 != nil)
    }

    // MARK: Writing

    /// Begins anew with a content that is another one, or may be.
    mutating func restart(_ head: BoundedHTTPResponseHead) throws(DownloadError) {
        size = 0
        try cut()
        sidecar.etag = Self.strongTag(head["ETag"])
        sidecar.lastModified = Self.strongDate(head)
        sidecar.total = head.contentLength
        sidecar.sha256 = declared ?? ContentDigest.sha256(head)
        sidecar.durable = 0
        sidecar.stored = nil
        try writeSidecar()
    }

    /// Takes over how long the whole is, where that was not known.
    mutating func learn(total: Int?) { sidecar.total = sidecar.total ?? total }

    /// Adds bytes behind those that are there.
    mutating func append(_ bytes: [UInt8]) throws(DownloadError) {
        let file = try opened()
        let offset = size
        try onDisk { () throws(FileError) in try file.write(bytes, at: offset) }
        size += bytes.count
        if sidecar.sha256 == nil, size - sidecar.durable >= Self.durableStep { try settle() }
    }

    /// Makes what is there count after a power cut, too.
    mutating func settle() throws(DownloadError) {
        guard let file, sidecar.durable != size else { return }
        try onDisk { () throws(FileError) in try file.sync() }
        sidecar.durable = size
        try writeSidecar()
    }

    /// Remembers that the content is in the store; the file has gone there.
    mutating func moved(to stored: FileID) throws(DownloadError) {
        file = nil
        size = 0
        sidecar.stored = stored
        try writeSidecar()
    }

    /// Forgets everything.
    mutating func discard() throws(DownloadError) {
        file = nil
        size = 0
        sidecar = Sidecar(url: sidecar.url, sha256: declared)
        for name in Self.names(of: sidecar.url) {
            try Self.remove(directory + "/" + name, fileSystem)
        }
    }

    /// Gives the descriptor back.
    mutating func close() { file = nil }

    static func remove(_ path: String, _ fileSystem: any FileSystem) throws(DownloadError) {
        do throws(FileError) {
            try fileSystem.remove(path)
        } catch let error where error.code == .notFound {
            return
        } catch { throw DownloadError(error) }
    }

    private mutating func opened() throws(DownloadError) -> any File {
        if let file { return file }
        let (fileSystem, path) = (fileSystem, path)
        let file = try inFolder { () throws(FileError) in
            try fileSystem.open(path, .createIfMissing)
        }
        self.file = file
        return file
    }

    /// Does something in the job's folder, which the system may have deleted with a cache folder.
    private func inFolder<T>(_ body: () throws(FileError) -> T) throws(DownloadError) -> T {
        do throws(FileError) { return try body() } catch {
            guard error.code == .notFound else { throw DownloadError(error) }
            try DownloadFolder.create(directory, fileSystem)
            return try onDisk(body)
        }
    }

    private mutating func cut() throws(DownloadError) {
        let file = try opened()
        let size = size
        try onDisk { () throws(FileError) in try file.truncate(to: size) }
    }

    // MARK: The sidecar

    private var sidecarPath: String {
        directory + "/" + Self.name(of: sidecar.url) + Self.sidecarSuffix
    }

    /// The files in the store that images of a job's folder have become.
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

    /// Under another name first: a kill leaves the old one or the new one.
    private func writeSidecar() throws(DownloadError) {
        var writer = JSONObjectWriter()
        writer.add("url", sidecar.url)
        if let etag = sidecar.etag { writer.add("etag", etag) }
        if let date = sidecar.lastModified { writer.add("lastModified", date) }
        if let total = sidecar.total { writer.add("total", total) }
        if let sha256 = sidecar.sha256 { writer.add("sha256", sha256.description) }
        writer.add("durable", sidecar.durable)
        if let stored = sidecar.stored { writer.add("stored", stored.description) }
        let bytes = writer.finished()
        let (path, new, fileSystem) = (sidecarPath, sidecarPath + ".new", fileSystem)
        try inFolder { () throws(FileError) in
            let file = try fileSystem.open(new, .createIfMissing)
            try file.truncate(to: 0)
            try file.write(bytes, at: 0)
            try file.sync()
            try fileSystem.rename(new, to: path)
        }
    }

    // MARK: Validators

    /// An entity tag that stands for every byte (RFC 9110, 8.8.3): not a weak one.
    static func strongTag(_ tag: String?) -> String? {
        guard let tag, (2...1_024).contains(tag.utf8.count), tag.hasPrefix("\""),
            tag.hasSuffix("\""),
            tag.utf8.dropFirst().dropLast().allSatisfy({ 0x21...0x7E ~= $0 && $0 != 0x22 })
        else { return nil }
        return tag
    }

    /// A date of last change that stands for every byte (RFC 9110, 8.8.2.2): at least a second
    /// before the answer, so that no later change has the same date.
    static func strongDate(_ head: BoundedHTTPResponseHead) -> String? {
        guard let text = head["Last-Modified"], let changed = HTTPDate.parse(text),
            let now = head["Date"].flatMap(HTTPDate.parse), now - changed >= 1_000
        else { return nil }
        return text
    }
}

// Computes the changes from the stored content of a language to the server's, and records only these, in
// commits of about 1 MiB. Created by ContentCommands. Spec/model/content.md, CONT-10.

import Daybook
import Foundation

/// A file of a page, to be stored.
public struct ContentResource: Sendable {
    /// The page's path.
    public var path: String
    /// The URL from which the file was fetched: an absolute URL.
    public var url: String
    /// The time of the server's last change.
    public var lastUpdate: ZonedTime
    /// The server's hash of the file.
    public var hash: String?
    /// Its other members in the server's JSON: one object, as it was written.
    public var properties: [UInt8]?
    /// Its bytes.
    public var content: Content

    /// The source of a file's bytes.
    public struct Content: Sendable {
        enum Source: Sendable {
            case bytes(@Sendable () throws -> [UInt8])
            case file(URL)
            case stored
            case kept
        }

        let source: Source

        /// The given bytes.
        public static func bytes(_ bytes: [UInt8]) -> Content {
            Content(source: .bytes { bytes })
        }

        /// The given bytes.
        public static func data(_ data: Data) -> Content { bytes(Array(data)) }

        /// A downloaded file on this device. It is moved into the store.
        public static func file(_ url: URL) -> Content { Content(source: .file(url)) }

        /// The file that is stored for the page and this URL.
        public static let stored = Content(source: .stored)

        /// The stored resource for the page and this URL, if there is one; it is not changed.
        static let kept = Content(source: .kept)

        /// The bytes that `read` returns when the file is stored.
        static func reading(_ read: @escaping @Sendable () throws -> [UInt8]) -> Content {
            Content(source: .bytes(read))
        }

        var isStored: Bool {
            if case .stored = source { true } else { false }
        }

        var isKept: Bool {
            if case .kept = source { true } else { false }
        }
    }

    /// Creates a resource.
    public init(
        path: String, url: String, lastUpdate: ZonedTime, hash: String? = nil,
        properties: [UInt8]? = nil, content: Content
    ) {
        self.path = path
        self.url = url
        self.lastUpdate = lastUpdate
        self.hash = hash
        self.properties = properties
        self.content = content
    }

    /// The members of an entry in the list of files.
    static let memberNames: [StaticString] = ["file_path", "last_update", "hash"]
}

/// A page or file that could not be stored.
public struct ContentFault: Hashable, Sendable, CustomStringConvertible {
    /// The page's path.
    public let path: String
    /// The URL of the file; nil for a page.
    public let url: String?
    /// The reason.
    public let reason: String

    /// Page, file and reason in one line.
    public var description: String {
        url.map { "\($0) of the page \(path): \(reason)" } ?? "the page \(path): \(reason)"
    }
}

/// The changes that storing a language's content has made.
public struct ContentChanges: Hashable, Sendable {
    /// The number of new and changed pages.
    public var pagesStored = 0
    /// The number of removed pages.
    public var pagesRemoved = 0
    /// The number of new and changed files.
    public var resourcesStored = 0
    /// The number of removed files.
    public var resourcesRemoved = 0
    /// Whether the time of the update has changed.
    public var isUpdated = false
    /// The given pages and files that could not be stored. What is stored under their paths and URLs stays.
    public var leftOut: [ContentFault] = []
    /// The cities that were evicted, because the content is the first of a city that is in use.
    public var evicted: [String] = []

    /// Creates an empty result.
    public init() {}

    /// Whether nothing was recorded.
    public var isEmpty: Bool { events == 0 }

    /// The number of recorded events.
    var events: Int {
        pagesStored + pagesRemoved + resourcesStored + resourcesRemoved + (isUpdated ? 1 : 0)
    }
}

/// The events that update a language of a city to the server's content.
struct ContentUpdate: Sendable {
    /// An event that is recorded if it changes the views.
    private struct Candidate: Sendable {
        let draft: EventDraft
        let subject: Subject

        var bytes: Int { (draft.json?.count ?? 0) + 512 }
    }

    /// The page or file that an event stores, or removes if the associated digest or JSON is nil.
    private enum Subject: Sendable {
        case page(_ path: String, digest: UInt64?, _ lastUpdate: Timestamp?)
        case resource(_ path: String, _ url: String, json: [UInt8]?, _ lastUpdate: Timestamp?)

        var count: WritableKeyPath<ContentChanges, Int> {
            switch self {
            case .page(_, digest: nil, _): \.pagesRemoved
            case .page: \.pagesStored
            case .resource(_, _, json: nil, _): \.resourcesRemoved
            case .resource: \.resourcesStored
            }
        }
    }

    private struct Key: Hashable, Sendable {
        var path: EntityID
        var url: EntityID
    }

    /// The origin of given content.
    enum Origin: Sendable {
        /// The server: it replaces everything that is stored.
        case server
        /// A folder. A stored page or file stays if it is newer; a time that is ahead of `now` counts only against
        /// one that is as well. Other content that is stored is removed if `removesOthers`.
        case folder(removesOthers: Bool, now: Timestamp)
    }

    private let city: String
    private let language: String
    private let origin: Origin
    /// The given files that can be stored.
    private(set) var resources: [ContentResource] = []
    /// The given pages and files that cannot be stored.
    private(set) var leftOut: [ContentFault] = []
    private var candidates: [Candidate] = []
    /// The paths of the given pages; nil keeps all other stored pages.
    private var paths: Set<EntityID>?
    /// The keys of the given files; nil keeps all other stored files.
    private var resourceKeys: Set<Key>?
    private var update: ContentUpdated?

    /// The maximum bytes of a commit, unless one event has more.
    private static let commitBytes = 1_048_576

    /// Checks the content as far as possible before any file is stored or event recorded. A page or file
    /// that cannot be stored is left out.
    ///
    /// - Throws: `EventError` for the city, the language or the time of the update.
    init(
        city: String, language: String, pages: [ContentPage]?, resources: [ContentResource]?,
        lastUpdate: ZonedTime?, _ origin: Origin, _ known: ContentView
    ) throws {
        try ContentUpdated.require(city, "city code")
        try ContentUpdated.require(language, "language code")
        self.city = city
        self.language = language
        self.origin = origin
        if let pages { try addCandidates(for: pages) }
        if let resources { try checkResources(resources, known) }
        if case .folder(removesOthers: false, _) = origin { (paths, resourceKeys) = (nil, nil) }
        if let lastUpdate {
            let updated = ContentUpdated(city: city, language: language, lastUpdate: lastUpdate)
            _ = try EventDraft.checked(updated)
            update = updated
        }
    }

    private mutating func addCandidates(for pages: [ContentPage]) throws {
        var paths: Set<EntityID> = []
        for page in pages {
            do {
                guard paths.insert(EntityID(page.path)).inserted else {
                    throw EventError(.refused, "it occurs twice")
                }
                let draft = try EventDraft.checked(
                    PageStored(city: city, language: language, page: page))
                let digest = PageStored.digest(of: draft.json ?? [])
                candidates.append(
                    Candidate(
                        draft: draft,
                        subject: .page(page.path, digest: digest, page.lastUpdate.moment)))
            } catch let error as EventError {
                leftOut.append(ContentFault(path: page.path, url: nil, reason: error.detail))
            }
        }
        self.paths = paths
    }

    // MARK: Files

    private mutating func checkResources(
        _ resources: [ContentResource], _ content: ContentView
    ) throws {
        var keys: Set<Key> = []
        for resource in resources {
            do {
                let key = Key(path: EntityID(resource.path), url: EntityID(resource.url))
                guard keys.insert(key).inserted else {
                    throw EventError(.refused, "it occurs twice")
                }
                let isKnown = cachedResource(for: resource, in: content) != nil
                guard isKnown || !resource.content.isStored else { throw Self.notStored }
                // The file is not stored yet: every id has this length, and no size is longer.
                _ = try EventDraft.checked(
                    storedEvent(resource, FileID(of: []), FileStore.fileBytesMax))
                self.resources.append(resource)
            } catch let error as EventError { leaveOut(resource, error.detail) }
        }
        resourceKeys = keys
    }

    private mutating func leaveOut(_ resource: ContentResource, _ reason: String) {
        leftOut.append(ContentFault(path: resource.path, url: resource.url, reason: reason))
    }

    private func cachedResource(
        for resource: ContentResource, in content: ContentView
    ) -> CachedResource? {
        content.resource(resource.url, of: resource.path, city: city, language: language)
    }

    private static let notStored = EventError(.refused, "it is not stored")

    private func storedEvent(
        _ resource: ContentResource, _ file: FileID, _ size: Int
    ) -> ResourceStored {
        ResourceStored(
            city: city, language: language, path: resource.path, url: resource.url, file: file,
            size: size, lastUpdate: resource.lastUpdate, hash: resource.hash,
            properties: resource.properties)
    }

    /// Stores a resource's file. A file that is missing, damaged or too large, or that the system cannot read,
    /// is left out.
    ///
    /// - Returns: the file, to be released when its event is recorded; nil if there is none.
    /// - Throws: `FileStoreError` for other failures.
    mutating func storeFileIfPossible(
        of resource: ContentResource, _ files: FileStore, _ content: ContentView,
        _ fileSystem: any FileSystem
    ) async throws -> FileID? {
        do { return try await storeFile(of: resource, files, content, fileSystem) } catch {
            let isOfFile =
                switch error {
                case is EventError: true
                case let error as FileStoreError:
                    [.missing, .damaged, .tooLarge].contains(error.code)
                // The given file, not one of the store.
                case is FileError: true
                default: false
                }
            guard isOfFile else { throw error }
            leaveOut(resource, "\(error)")
            return nil
        }
    }

    private mutating func storeFile(
        of resource: ContentResource, _ files: FileStore, _ content: ContentView,
        _ fileSystem: any FileSystem
    ) async throws -> FileID? {
        let file: FileID
        let size: Int
        switch resource.content.source {
        case .bytes(let read):
            let bytes = try read()
            try Self.requireContent(bytes, bytes.count, of: resource)
            (file, size) = (FileID(of: bytes), bytes.count)
            // An intact file is not written again.
            if !(await files.retain(file)) { _ = try await files.storeRetained(bytes) }
        case .file(let url):
            let path = try url.localPath()
            size = try Self.checkedSize(of: path, resource, fileSystem)
            file = try await files.storeRetained(moving: path)
        case .stored:
            // It may have been deleted since the check.
            guard let cached = cachedResource(for: resource, in: content),
                await files.retain(cached.file)
            else { throw Self.notStored }
            (file, size) = (cached.file, cached.size)
        case .kept: return nil
        }
        let stored = storedEvent(resource, file, size)
        do {
            candidates.append(
                Candidate(
                    draft: try EventDraft.checked(stored),
                    subject: .resource(
                        resource.path, resource.url, json: try stored.json(),
                        resource.lastUpdate.moment)))
        } catch {
            await files.release([file])
            throw error
        }
        return file
    }

    private static func checkedSize(
        of path: String, _ resource: ContentResource, _ fileSystem: any FileSystem
    ) throws -> Int {
        do {
            let file = try fileSystem.open(path, .read)
            let size = try file.size()
            let start = try file.read(at: 0, count: min(size, WebPage.prefixBytes))
            try requireContent(start, size, of: resource)
            return size
        } catch let error as FileError { throw FileStoreError(error) }
    }

    /// Refuses what a server, or the login page of a network, has sent in the place of a file.
    private static func requireContent(
        _ start: [UInt8], _ size: Int, of resource: ContentResource
    ) throws(EventError) {
        guard let fault = WebPage.fault(of: start, at: resource.url) else { return }
        throw EventError(.invalidData, "its file \(fault)")
    }

    // MARK: Recording

    /// The progress of recording.
    private struct Progress: Sendable {
        var changes = ContentChanges()
        /// The index of the next candidate.
        var next = 0
        /// Whether all of the given content is stored.
        var isComplete = false
    }

    /// Records the changes, in one commit if they fit.
    ///
    /// - Throws: `EventError` (`refused`) if other commands keep changing the same content; `LogError`.
    func record(in store: EventStore) async throws -> ContentChanges {
        let (pages, content) = (store.view(PagesView.self), store.view(ContentView.self))
        // Each event three times, and 100 removals of content that other commands store meanwhile.
        let maxEvents = 3 * (candidates.count + (try removals(pages, content)).count) + 100
        var progress = Progress()
        while !progress.isComplete {
            guard progress.changes.events <= maxEvents else {
                throw EventError(
                    .refused,
                    "other commands keep changing the content of \(city) in \(language); "
                        + "store it again")
            }
            let start = progress
            progress = try await store.write { try advance(start, &$0) }
        }
        progress.changes.leftOut = leftOut
        return progress.changes
    }

    /// Records as many events as fit into a commit. The last commit checks all candidates again: between
    /// two commits other commands may have removed or replaced content that earlier commits stored.
    private func advance(
        _ start: Progress, _ transaction: inout EventStore.Transaction
    ) throws -> Progress {
        let pages = transaction.view(PagesView.self)
        let content = transaction.view(ContentView.self)
        var progress = start
        var bytes = 0
        func appendIfFits(_ candidate: Candidate) -> Bool {
            guard bytes == 0 || bytes + candidate.bytes <= Self.commitBytes else { return false }
            bytes += candidate.bytes
            // A candidate can be recorded more than once, each time as a new event.
            var draft = candidate.draft
            draft.id = UUID()
            transaction.append(
                draft, replacing: lwwTimestamp(candidate.subject, pages, content))
            progress.changes[keyPath: candidate.subject.count] += 1
            return true
        }
        for _ in candidates {
            let candidate = candidates[progress.next]
            if isChange(candidate.subject, pages, content), !appendIfFits(candidate) {
                return progress
            }
            progress.next = (progress.next + 1) % candidates.count
        }
        for removal in try removals(pages, content) where !appendIfFits(removal) {
            return progress
        }
        if let update, isUpToDate,
            content.lastUpdate(of: city, language: language) != update.lastUpdate
        {
            try transaction.append(
                update, replacing: content.updateTimestamp(of: city, language: language))
            progress.changes.isUpdated = true
        }
        progress.isComplete = true
        return progress
    }

    /// Whether the language equals the server's content after the update. A folder that is not stored as a
    /// whole does not have it: the app must update then.
    private var isUpToDate: Bool {
        if case .folder = origin { leftOut.isEmpty } else { true }
    }

    private func isChange(_ subject: Subject, _ pages: PagesView, _ content: ContentView) -> Bool {
        switch subject {
        case .page(let path, let digest, let lastUpdate):
            let known = pages.page(path, city: city, language: language)
            return known?.digest != digest && !isOlder(lastUpdate, than: known?.lastUpdate)
        case .resource(let path, let url, let json, let lastUpdate):
            let known = content.resource(url, of: path, city: city, language: language)
            guard !isOlder(lastUpdate, than: known?.lastUpdate) else { return false }
            return (try? known?.event(city: city, language: language).json()) != json
        }
    }

    /// Whether a page or file of a folder is older than the stored one.
    private func isOlder(_ given: Timestamp?, than known: ZonedTime?) -> Bool {
        guard case .folder(_, let now) = origin, let given, let known = known?.moment else {
            return false
        }
        // A time that is not believed replaces nothing.
        guard given.believed(at: now, beside: known) != nil else { return true }
        return known.believed(at: now, beside: given).map { $0 > given } ?? false
    }

    private func lwwTimestamp(
        _ subject: Subject, _ pages: PagesView, _ content: ContentView
    ) -> LWWTimestamp? {
        switch subject {
        case .page(let path, _, _): pages.lwwTimestamp(of: path, city: city, language: language)
        case .resource(let path, let url, _, _):
            content.lwwTimestamp(ofResource: url, of: path, city: city, language: language)
        }
    }

    /// The events that remove stored pages and files that were not given.
    private func removals(_ pages: PagesView, _ content: ContentView) throws -> [Candidate] {
        var removals: [Candidate] = []
        if let paths {
            for page in pages.all(city: city, language: language)
            where !paths.contains(EntityID(page.path)) {
                let removed = PageRemoved(city: city, language: language, path: page.path)
                removals.append(
                    Candidate(
                        draft: try EventDraft.checked(removed),
                        subject: .page(page.path, digest: nil, nil)))
            }
        }
        if let resourceKeys {
            for resource in content.resources(city: city, language: language)
            where !resourceKeys.contains(
                Key(path: EntityID(resource.path), url: EntityID(resource.url)))
            {
                let (path, url) = (resource.path, resource.url)
                let removed = ResourceRemoved(city: city, language: language, path: path, url: url)
                removals.append(
                    Candidate(
                        draft: try EventDraft.checked(removed),
                        subject: .resource(path, url, json: nil, nil)))
            }
        }
        return removals
    }
}

extension CachedResource {
    /// The event that stores this resource.
    func event(city: String, language: String) -> ResourceStored {
        ResourceStored(
            city: city, language: language, path: path, url: url, file: file, size: size,
            lastUpdate: lastUpdate, hash: hash, properties: properties)
    }
}

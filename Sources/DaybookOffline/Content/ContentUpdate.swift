// From what a server gave to the events that say what has changed: only these are recorded, in
// commits of a sensible size. Made by ContentCommands. Spec/model/content.md, CONT-10.

import Daybook
import Foundation

/// A file of a page, to be stored.
public struct ContentResource: Sendable {
    /// The page's path.
    public var path: String
    /// Where the file came from: an absolute URL.
    public var url: String
    /// When the server changed it last.
    public var lastUpdate: ZonedTime
    /// The server's hash of the file.
    public var hash: String?
    /// Its other members in the server's JSON: one object, as it was written.
    public var properties: [UInt8]?
    /// Its bytes.
    public var content: Content

    /// Where the bytes of a file are.
    public struct Content: Sendable {
        enum Place: Sendable {
            case bytes(@Sendable () throws -> [UInt8])
            case file(URL)
            case stored
            case kept
        }

        let place: Place

        /// Here.
        public static func bytes(_ bytes: [UInt8]) -> Content {
            Content(place: .bytes { bytes })
        }

        /// In a file on this device that was downloaded. It is moved into the store.
        public static func file(_ url: URL) -> Content { Content(place: .file(url)) }

        /// In the store: the file that the page has under this URL already.
        public static let stored = Content(place: .stored)

        /// In the store, if the page has a file under this URL: all that is known of it stays.
        static let kept = Content(place: .kept)

        /// Where they are read when it is their turn.
        static func reading(_ read: @escaping @Sendable () throws -> [UInt8]) -> Content {
            Content(place: .bytes(read))
        }

        var isStored: Bool {
            if case .stored = place { true } else { false }
        }

        var isKept: Bool {
            if case .kept = place { true } else { false }
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

/// What storing a language's content has changed.
public struct ContentChanges: Hashable, Sendable {
    /// Pages that are new or other than before.
    public var pagesStored = 0
    /// Pages that are no more.
    public var pagesRemoved = 0
    /// Files that are new or other than before.
    public var resourcesStored = 0
    /// Files that are no more.
    public var resourcesRemoved = 0
    /// Whether the time of the update is another.
    public var isUpdated = false

    /// No changes.
    public init() {}

    /// Whether nothing was recorded.
    public var isEmpty: Bool { self == ContentChanges() }

    /// How many events were recorded.
    var events: Int {
        pagesStored + pagesRemoved + resourcesStored + resourcesRemoved + (isUpdated ? 1 : 0)
    }
}

/// The events that bring a language of a city to what a server says of it.
struct ContentUpdate: Sendable {
    /// An event that may be news to the views.
    private struct Candidate: Sendable {
        let draft: EventDraft
        let subject: Subject

        var bytes: Int { (draft.json?.count ?? 0) + 512 }
    }

    /// What an event makes of a page or a file; nil: it removes it.
    private enum Subject: Sendable {
        case page(_ path: String, digest: UInt64?)
        case resource(_ path: String, _ url: String, json: [UInt8]?)

        var count: WritableKeyPath<ContentChanges, Int> {
            switch self {
            case .page(_, digest: nil): \.pagesRemoved
            case .page: \.pagesStored
            case .resource(_, _, json: nil): \.resourcesRemoved
            case .resource: \.resourcesStored
            }
        }
    }

    private struct Key: Hashable, Sendable {
        var path: EntityID
        var url: EntityID
    }

    private let city: String
    private let language: String
    private var candidates: [Candidate] = []
    /// The pages that are given; nil leaves the others alone.
    private var paths: Set<EntityID>?
    /// The files that are given; nil leaves the others alone.
    private var named: Set<Key>?
    private var update: ContentUpdated?

    /// Bytes of a commit, unless one event has more.
    private static let commitBytes = 1_048_576

    /// Checks all that can be checked before a file is stored and anything recorded.
    ///
    /// - Throws: `EventError`.
    init(
        city: String, language: String, pages: [ContentPage]?, resources: [ContentResource]?,
        lastUpdate: ZonedTime?, _ known: ContentView
    ) throws {
        self.city = city
        self.language = language
        if let pages { try add(pages) }
        if let resources { try check(resources, known) }
        if let lastUpdate {
            let updated = ContentUpdated(city: city, language: language, lastUpdate: lastUpdate)
            _ = try EventDraft.checked(updated)
            update = updated
        }
    }

    private mutating func add(_ pages: [ContentPage]) throws {
        var paths: Set<EntityID> = []
        for page in pages {
            guard paths.insert(EntityID(page.path)).inserted else {
                throw EventError(.refused, "the page \(page.path) stands there twice")
            }
            let draft = try EventDraft.checked(
                PageStored(city: city, language: language, page: page))
            let digest = PageStored.digest(of: draft.json ?? [])
            candidates.append(Candidate(draft: draft, subject: .page(page.path, digest: digest)))
        }
        self.paths = paths
    }

    // MARK: Files

    private mutating func check(_ resources: [ContentResource], _ known: ContentView) throws {
        var named: Set<Key> = []
        for resource in resources {
            let key = Key(path: EntityID(resource.path), url: EntityID(resource.url))
            guard named.insert(key).inserted else {
                throw EventError(
                    .refused, "\(resource.url) stands there twice for the page \(resource.path)")
            }
            guard !resource.content.isStored || self.known(resource, known) != nil else {
                throw Self.notStored(resource)
            }
            // Any file has an id and a size as long as these.
            _ = try EventDraft.checked(stored(resource, FileID(of: []), FileStore.fileBytesMax))
        }
        self.named = named
    }

    private func known(_ resource: ContentResource, _ content: ContentView) -> CachedResource? {
        content.resource(resource.url, of: resource.path, city: city, language: language)
    }

    private static func notStored(_ resource: ContentResource) -> EventError {
        EventError(.refused, "\(resource.url) of the page \(resource.path) is not stored")
    }

    private func stored(
        _ resource: ContentResource, _ file: FileID, _ size: Int
    ) -> ResourceStored {
        ResourceStored(
            city: city, language: language, path: resource.path, url: resource.url, file: file,
            size: size, lastUpdate: resource.lastUpdate, hash: resource.hash,
            properties: resource.properties)
    }

    /// Stores a resource's file.
    ///
    /// - Returns: the file, to be released when its event is recorded.
    mutating func add(
        _ resource: ContentResource, _ files: FileStore, _ content: ContentView,
        _ fileSystem: any FileSystem
    ) async throws -> FileID? {
        let file: FileID
        let size: Int
        switch resource.content.place {
        case .bytes(let read):
            let bytes = try read()
            (file, size) = (FileID(of: bytes), bytes.count)
            // What is there and sound is not written again.
            if !(await files.hold(file)) { _ = try await files.add(bytes) }
        case .file(let url):
            let path = try url.localPath()
            size = try Self.size(of: path, fileSystem)
            file = try await files.add(moving: path)
        case .stored:
            // It may have gone since it was looked for.
            guard let known = known(resource, content), await files.hold(known.file) else {
                throw Self.notStored(resource)
            }
            (file, size) = (known.file, known.size)
        case .kept: return nil
        }
        let stored = stored(resource, file, size)
        do {
            candidates.append(
                Candidate(
                    draft: try EventDraft.checked(stored),
                    subject: .resource(resource.path, resource.url, json: try stored.json())))
        } catch {
            await files.release([file])
            throw error
        }
        return file
    }

    private static func size(
        of path: String, _ fileSystem: any FileSystem
    ) throws(FileStoreError) -> Int {
        do throws(FileError) {
            return try fileSystem.open(path, .read).size()
        } catch { throw FileStoreError(error) }
    }

    // MARK: Recording

    /// How far recording has come.
    private struct Progress: Sendable {
        var changes = ContentChanges()
        /// The candidate that is next.
        var next = 0
        /// Whether all that was given is there.
        var isWhole = false
    }

    /// Records what is news, in one commit where it is little.
    ///
    /// - Throws: `EventError` (`refused`) if others change the same again and again; `LogError`.
    func record(in store: EventStore) async throws -> ContentChanges {
        let (pages, content) = (store.view(PagesView.self), store.view(ContentView.self))
        // Each thing three times, and a few that others add.
        let most = 3 * (candidates.count + (try removals(pages, content)).count) + 100
        var progress = Progress()
        while !progress.isWhole {
            guard progress.changes.events <= most else {
                throw EventError(
                    .refused,
                    "others keep changing the content of \(city) in \(language). Store it again")
            }
            let start = progress
            progress = try await store.write { try advance(start, &$0) }
        }
        return progress.changes
    }

    /// Records as much as a commit takes. The last commit looks at everything once more: between two
    /// commits others may have removed or replaced what the first have stored.
    private func advance(
        _ start: Progress, _ transaction: inout EventStore.Transaction
    ) throws -> Progress {
        let pages = transaction.view(PagesView.self)
        let content = transaction.view(ContentView.self)
        var progress = start
        var bytes = 0
        func add(_ candidate: Candidate) -> Bool {
            guard bytes == 0 || bytes + candidate.bytes <= Self.commitBytes else { return false }
            bytes += candidate.bytes
            // Recorded again, it is another event.
            var draft = candidate.draft
            draft.id = UUID()
            transaction.append(
                draft, replacing: stamp(candidate.subject, pages, content))
            progress.changes[keyPath: candidate.subject.count] += 1
            return true
        }
        for _ in candidates {
            let candidate = candidates[progress.next]
            if isNews(candidate.subject, pages, content), !add(candidate) { return progress }
            progress.next = (progress.next + 1) % candidates.count
        }
        for removal in try removals(pages, content) where !add(removal) { return progress }
        if let update, content.lastUpdate(of: city, language: language) != update.lastUpdate {
            try transaction.append(
                update, replacing: content.updateStamp(of: city, language: language))
            progress.changes.isUpdated = true
        }
        progress.isWhole = true
        return progress
    }

    private func isNews(_ subject: Subject, _ pages: PagesView, _ content: ContentView) -> Bool {
        switch subject {
        case .page(let path, let digest):
            return pages.page(path, city: city, language: language)?.digest != digest
        case .resource(let path, let url, let json):
            let known = content.resource(url, of: path, city: city, language: language)
            return (try? known?.event(city: city, language: language).json()) != json
        }
    }

    private func stamp(
        _ subject: Subject, _ pages: PagesView, _ content: ContentView
    ) -> Stamp? {
        switch subject {
        case .page(let path, _): pages.stamp(of: path, city: city, language: language)
        case .resource(let path, let url, _):
            content.stamp(ofResource: url, of: path, city: city, language: language)
        }
    }

    /// The events that remove what is there and was not given.
    private func removals(_ pages: PagesView, _ content: ContentView) throws -> [Candidate] {
        var removals: [Candidate] = []
        if let paths {
            for page in pages.all(city: city, language: language)
            where !paths.contains(EntityID(page.path)) {
                let removed = PageRemoved(city: city, language: language, path: page.path)
                removals.append(
                    Candidate(
                        draft: try EventDraft.checked(removed),
                        subject: .page(page.path, digest: nil)))
            }
        }
        if let named {
            for resource in content.resources(city: city, language: language)
            where !named.contains(Key(path: EntityID(resource.path), url: EntityID(resource.url))) {
                let (path, url) = (resource.path, resource.url)
                let removed = ResourceRemoved(city: city, language: language, path: path, url: url)
                removals.append(
                    Candidate(
                        draft: try EventDraft.checked(removed),
                        subject: .resource(path, url, json: nil)))
            }
        }
        return removals
    }
}

extension CachedResource {
    /// The event that has stored it.
    func event(city: String, language: String) -> ResourceStored {
        ResourceStored(
            city: city, language: language, path: path, url: url, file: file, size: size,
            lastUpdate: lastUpdate, hash: hash, properties: properties)
    }
}

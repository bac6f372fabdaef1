// From what a server gave to the events that say what has changed: only these are recorded, in
// commits of a sensible size. Made by ContentCommands. Spec/content.md, CONT-10.

import EventSourcing
import Foundation
import LogFormat
import LogStorage

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
    /// Its bytes.
    public var content: Content

    /// Where the bytes of a file are.
    public struct Content: Sendable {
        enum Place: Sendable {
            case bytes(@Sendable () throws -> [UInt8])
            case file(URL)
            case stored
        }

        let place: Place

        /// Here.
        public static func bytes(_ bytes: [UInt8]) -> Content {
            Content(place: .bytes { bytes })
        }

        /// In a file that was downloaded. It is moved into the store.
        public static func file(_ url: URL) -> Content { Content(place: .file(url)) }

        /// In the store: the file that the page has under this URL already.
        public static let stored = Content(place: .stored)

        /// Where they are read when it is their turn.
        static func reading(_ read: @escaping @Sendable () throws -> [UInt8]) -> Content {
            Content(place: .bytes(read))
        }

        var isStored: Bool {
            if case .stored = place { true } else { false }
        }
    }

    /// Creates a resource.
    public init(
        path: String, url: String, lastUpdate: ZonedTime, hash: String? = nil, content: Content
    ) {
        self.path = path
        self.url = url
        self.lastUpdate = lastUpdate
        self.hash = hash
        self.content = content
    }
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
    package var events: Int {
        pagesStored + pagesRemoved + resourcesStored + resourcesRemoved + (isUpdated ? 1 : 0)
    }
}

/// The events that bring a language of a city to what a server says of it.
struct ContentUpdate {
    /// An event, and whether it says something that the views do not say already.
    private struct Candidate: Sendable {
        let draft: EventDraft
        let kind: WritableKeyPath<ContentChanges, Int> & Sendable
        let isNews: @Sendable (PagesView, ContentView) -> Bool

        var bytes: Int { (draft.json?.count ?? 0) + 512 }
    }

    private let city: String
    private let language: String
    private var candidates: [Candidate] = []
    private var update: ContentUpdated?

    /// Bytes of a commit, unless one event has more.
    private static let commitBytes = 1_048_576

    init(city: String, language: String) {
        self.city = city
        self.language = language
    }

    // MARK: Pages

    /// - Throws: `EventError` for a page that cannot be recorded.
    mutating func add(_ pages: [ContentPage], _ known: PagesView) throws {
        let (city, language) = (city, language)
        var given: Set<EntityID> = []
        for page in pages {
            guard given.insert(EntityID(page.path)).inserted else {
                throw EventError(.refused, "the page \(page.path) stands there twice")
            }
            let draft = try Self.draft(PageStored(city: city, language: language, page: page))
            let digest = PageStored.digest(of: draft.json ?? [])
            let path = page.path
            candidates.append(
                Candidate(draft: draft, kind: \.pagesStored) { pages, _ in
                    pages.page(path, city: city, language: language)?.digest != digest
                })
        }
        for page in known.all(city: city, language: language)
        where !given.contains(EntityID(page.path)) {
            let path = page.path
            candidates.append(
                Candidate(
                    draft: try Self.draft(PageRemoved(city: city, language: language, path: path)),
                    kind: \.pagesRemoved
                ) { pages, _ in
                    pages.page(path, city: city, language: language) != nil
                })
        }
    }

    /// A draft whose data obey the rules of their type and fit a line.
    private static func draft<Payload: EventPayload>(_ payload: Payload) throws -> EventDraft {
        let draft = try EventDraft(payload)
        let json = draft.json ?? []
        _ = try Payload(json: json)
        // The line has the subject twice, and what the log adds.
        let subject = payload.subject.map(JSONObjectWriter.string) ?? []
        let bytes = json.count + 2 * subject.count + 512
        guard bytes <= FormatLimit.lineBytesMax else {
            throw EventError(
                .tooLarge,
                "\(payload.subject ?? Payload.type) has about \(bytes) bytes as an event; at most "
                    + "\(FormatLimit.lineBytesMax) fit")
        }
        return draft
    }

    // MARK: Files

    private struct Key: Hashable {
        var path: EntityID
        var url: EntityID
    }

    private var named: Set<Key> = []

    /// Checks what can be checked before a file is stored.
    ///
    /// - Throws: `EventError`.
    mutating func check(
        _ resources: [ContentResource], _ known: ContentView
    ) throws(EventError) {
        for resource in resources {
            _ = try ResourceName(path: resource.path, url: resource.url)
            let key = Key(path: EntityID(resource.path), url: EntityID(resource.url))
            guard named.insert(key).inserted else {
                throw EventError(
                    .refused, "\(resource.url) stands there twice for the page \(resource.path)")
            }
            guard !resource.content.isStored || self.known(resource, known) != nil else {
                throw EventError(
                    .refused, "\(resource.url) of the page \(resource.path) is not stored")
            }
        }
    }

    private func known(_ resource: ContentResource, _ content: ContentView) -> CachedResource? {
        content.resource(resource.url, of: resource.path, city: city, language: language)
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
            size = try Self.size(of: url, fileSystem)
            file = try await files.add(moving: url.path)
        case .stored:
            guard let known = known(resource, content) else { return nil }
            (file, size) = (known.file, known.size)
        }
        let held = resource.content.isStored ? nil : file
        let stored = ResourceStored(
            city: city, language: language, path: resource.path, url: resource.url, file: file,
            size: size, lastUpdate: resource.lastUpdate, hash: resource.hash)
        let (city, language) = (city, language)
        let json = stored.json()
        do {
            candidates.append(
                Candidate(draft: try Self.draft(stored), kind: \.resourcesStored) { _, content in
                    let known = content.resource(
                        stored.url, of: stored.path, city: city, language: language)
                    return known?.event(city: city, language: language).json() != json
                })
        } catch {
            if let held { await files.release([held]) }
            throw error
        }
        return held
    }

    private static func size(
        of url: URL, _ fileSystem: any FileSystem
    ) throws(FileStoreError) -> Int {
        do throws(FileError) {
            return try fileSystem.open(url.path, .read).size()
        } catch { throw FileStoreError(error) }
    }

    /// Removes the files that were not given.
    mutating func removeOtherResources(_ known: ContentView) throws {
        let (city, language) = (city, language)
        for resource in known.resources(city: city, language: language)
        where !named.contains(Key(path: EntityID(resource.path), url: EntityID(resource.url))) {
            let (path, url) = (resource.path, resource.url)
            let removed = ResourceRemoved(city: city, language: language, path: path, url: url)
            candidates.append(
                Candidate(draft: try Self.draft(removed), kind: \.resourcesRemoved) { _, content in
                    content.resource(url, of: path, city: city, language: language) != nil
                })
        }
    }

    // MARK: Recording

    /// The last event.
    mutating func end(_ lastUpdate: ZonedTime) throws {
        update = ContentUpdated(city: city, language: language, lastUpdate: lastUpdate)
    }

    /// Records what is news, in one commit where it is little.
    func record(in store: EventStore) async throws -> ContentChanges {
        let (pages, content) = (store.view(PagesView.self), store.view(ContentView.self))
        var batches: [[Candidate]] = [[]]
        var bytes = 0
        for candidate in candidates where candidate.isNews(pages, content) {
            if bytes + candidate.bytes > Self.commitBytes, bytes > 0 {
                batches.append([])
                bytes = 0
            }
            batches[batches.count - 1].append(candidate)
            bytes += candidate.bytes
        }
        var changes = ContentChanges()
        for (number, batch) in batches.enumerated() {
            let update = number == batches.count - 1 ? update : nil
            let start = changes
            changes = try await store.write { transaction in
                var changes = start
                let pages = transaction.view(PagesView.self)
                let content = transaction.view(ContentView.self)
                for candidate in batch where candidate.isNews(pages, content) {
                    transaction.append(candidate.draft)
                    changes[keyPath: candidate.kind] += 1
                }
                if let update,
                    content.lastUpdate(of: update.city, language: update.language)
                        != update.lastUpdate
                {
                    try transaction.append(update)
                    changes.isUpdated = true
                }
                return changes
            }
        }
        return changes
    }
}

extension CachedResource {
    /// The event that has stored it.
    func event(city: String, language: String) -> ResourceStored {
        ResourceStored(
            city: city, language: language, path: path, url: url, file: file, size: size,
            lastUpdate: lastUpdate, hash: hash)
    }
}

// What is kept in memory of a page: everything that lists of pages show, and where the rest is. Made
// by PagesView; ContentCommands reads the rest from the log.

import Daybook
import Foundation

/// A page without its content, and the event that holds it.
public struct StoredPage: Hashable, Sendable, Identifiable {
    /// Where it is. Unique in a city's language.
    public let path: String
    /// What it is.
    public let kind: PageKind
    /// Its title.
    public let title: String
    /// When the server changed it last.
    public let lastUpdate: ZonedTime
    /// The URL of a picture; may be empty.
    public let thumbnail: String?
    /// The page above it in the tree; empty for those at the top.
    public let parentPath: String?
    /// Its place among the pages beside it.
    public let order: Int?
    /// When an event begins.
    public let start: Timestamp?
    /// Bytes of its HTML.
    public let contentBytes: Int
    /// The event that holds the whole page.
    public let event: UUID
    /// What tells whether a page has changed.
    let digest: UInt64

    /// The path.
    public var id: String { path }

    init(_ page: ContentPage, event: UUID, digest: UInt64) {
        path = page.path
        kind = page.kind
        title = page.title
        lastUpdate = page.lastUpdate
        thumbnail = page.thumbnail
        parentPath = page.parentPath
        order = page.order
        start = page.date?.start.moment
        contentBytes = page.content.utf8.count
        self.event = event
        self.digest = digest
    }

    /// The order in which pages are shown: by `order`, those without one last; then by `start`; then
    /// by path, byte by byte.
    static func comesBefore(_ one: StoredPage, _ other: StoredPage) -> Bool {
        let (a, b) = (one.order ?? .max, other.order ?? .max)
        guard a == b else { return a < b }
        let last = Timestamp(milliseconds: .max)
        let (c, d) = (one.start ?? last, other.start ?? last)
        return c == d ? EntityID(one.path) < EntityID(other.path) : c < d
    }
}

extension StoredPage {
    func write(to writer: inout StateWriter) {
        writer.add(byte: kind.code)
        writer.add(title)
        writer.add(lastUpdate.text)
        writer.add(optional: thumbnail)
        writer.add(optional: parentPath)
        writer.add(order != nil)
        if let order { writer.add(signed: order) }
        writer.add(start != nil)
        if let start { writer.add(start) }
        writer.add(count: contentBytes)
        writer.add(event)
        writer.add(digest)
    }

    init(path: String, _ reader: inout StateReader) throws(EventError) {
        self.path = path
        guard let kind = PageKind(code: try reader.byte()) else {
            throw reader.fault("a page is of no known kind")
        }
        self.kind = kind
        title = try reader.string()
        lastUpdate = try reader.zonedTime()
        thumbnail = try reader.optionalString()
        parentPath = try reader.optionalString()
        order = try reader.bool() ? try reader.signed() : nil
        start = try reader.bool() ? try reader.time() : nil
        contentBytes = try reader.nonNegative()
        event = try reader.uuid()
        digest = try reader.integer()
    }
}

extension PageKind {
    fileprivate var code: UInt8 {
        switch self {
        case .category: 0
        case .event: 1
        case .poi: 2
        }
    }

    fileprivate init?(code: UInt8) {
        guard let kind = Self.allCases.first(where: { $0.code == code }) else { return nil }
        self = kind
    }
}

extension StateWriter {
    mutating func add(optional value: String?) {
        add(value != nil)
        if let value { add(value) }
    }

    /// Writes a number that may be negative; small ones are short.
    mutating func add(signed value: Int) {
        let wide = Int64(value)
        add(UInt64(bitPattern: (wide << 1) ^ (wide >> 63)))
    }
}

extension StateReader {
    mutating func optionalString() throws(EventError) -> String? {
        try bool() ? try string() : nil
    }

    mutating func signed() throws(EventError) -> Int {
        let value = try integer()
        return Int(Int64(bitPattern: value >> 1) ^ -Int64(bitPattern: value & 1))
    }

    mutating func zonedTime() throws(EventError) -> ZonedTime {
        guard let time = ZonedTime(try string()) else { throw fault("a time is none") }
        return time
    }
}

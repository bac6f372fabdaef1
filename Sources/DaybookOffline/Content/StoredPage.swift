// A page in memory: the data that lists of pages show, and the id of its event. Created by PagesView;
// ContentCommands reads the HTML from the log.

import Daybook
import Foundation

/// A page without its content, and the id of the event that contains it.
public struct StoredPage: Hashable, Sendable, Identifiable {
    /// Its path. Unique in a city's language.
    public let path: String
    /// Its kind.
    public let kind: PageKind
    /// Its title.
    public let title: String
    /// The time of the server's last change.
    public let lastUpdate: ZonedTime
    /// The URL of a picture; may be empty.
    public let thumbnail: String?
    /// The path of its parent in the tree; empty for a top page.
    public let parentPath: String?
    /// Its sort key among its siblings.
    public let order: Int?
    /// The start of an event.
    public let start: Timestamp?
    /// Bytes of its HTML.
    public let contentBytes: Int
    /// The id of the event that contains the complete page.
    public let event: UUID
    /// The digest of the event's data, which detects a changed page.
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
    static func precedes(_ lhs: StoredPage, _ rhs: StoredPage) -> Bool {
        let orders = (lhs.order ?? .max, rhs.order ?? .max)
        guard orders.0 == orders.1 else { return orders.0 < orders.1 }
        let last = Timestamp(milliseconds: .max)
        let starts = (lhs.start ?? last, rhs.start ?? last)
        guard starts.0 == starts.1 else { return starts.0 < starts.1 }
        return EntityID(lhs.path) < EntityID(rhs.path)
    }
}

extension StoredPage {
    func write(to writer: inout StateWriter) {
        writer.write(byte: kind.code)
        writer.write(title)
        writer.write(lastUpdate.text)
        writer.write(optional: thumbnail)
        writer.write(optional: parentPath)
        writer.write(order != nil)
        if let order { writer.write(signed: order) }
        writer.write(start != nil)
        if let start { writer.write(start) }
        writer.write(count: contentBytes)
        writer.write(event)
        writer.write(digest)
    }

    init(path: String, _ reader: inout StateReader) throws(EventError) {
        self.path = path
        guard let kind = PageKind(code: try reader.byte()) else {
            throw reader.fault("a page has an unknown kind")
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
    mutating func write(optional value: String?) {
        write(value != nil)
        if let value { write(value) }
    }

    /// Writes a signed number in zigzag encoding, so that small absolute values are short.
    mutating func write(signed value: Int) {
        let wide = Int64(value)
        write(UInt64(bitPattern: (wide << 1) ^ (wide >> 63)))
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
        guard let time = ZonedTime(try string()) else {
            throw fault("a time is not as of RFC 3339")
        }
        return time
    }
}

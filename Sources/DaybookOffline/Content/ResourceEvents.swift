// The events of the files of pages: stored, removed. The bytes are in the FileStore.
// Spec/model/events.md, EVT-7.

import Daybook

/// A file that a page shows was stored. It replaces the one with the same page and URL.
public struct ResourceStored: EventPayload, Hashable {
    public static let type = "daybook.resource.stored"
    /// The city.
    public var city: String
    /// The language.
    public var language: String
    /// The page's path.
    public var path: String
    /// The URL from which the file was fetched.
    public var url: String
    /// The file.
    public var file: FileID
    /// Its size in bytes.
    public var size: Int
    /// The time of the server's last change.
    public var lastUpdate: ZonedTime
    /// The server's hash of the file.
    public var hash: String?
    /// Its other members in the server's JSON: one object, as it was written.
    public var properties: [UInt8]?

    /// Creates the event's data.
    public init(
        city: String, language: String, path: String, url: String, file: FileID, size: Int,
        lastUpdate: ZonedTime, hash: String? = nil, properties: [UInt8]? = nil
    ) {
        self.city = city
        self.language = language
        self.path = path
        self.url = url
        self.file = file
        self.size = size
        self.lastUpdate = lastUpdate
        self.hash = hash
        self.properties = properties
    }

    public init(json: [UInt8]) throws {
        let fields = try JSONFields(json)
        city = try fields.identifier("city")
        language = try fields.identifier("language")
        path = try fields.identifier("path")
        url = try fields.identifier("url")
        _ = try ResourceName(path: path, url: url)
        guard let file = FileID(try fields.string("file")) else {
            throw EventError(.invalidData, "data.file is not the id of a file")
        }
        self.file = file
        size = try fields.required(try fields.count("size"), "size")
        lastUpdate = try fields.time("lastUpdate")
        hash = try fields.optionalString("hash")
        properties = fields.properties(.event, beside: ContentResource.memberNames)
    }

    public var subject: String? { path }

    /// The data as JSON text.
    ///
    /// - Throws: `EventError` for properties that are no object, or contain a member of the entry.
    public func json() throws -> [UInt8] {
        var writer = JSONObjectWriter()
        writer.appendMember("city", city)
        writer.appendMember("language", language)
        writer.appendMember("path", path)
        writer.appendMember("url", url)
        writer.appendMember("file", file.description)
        writer.appendMember("size", size)
        writer.appendMember("lastUpdate", lastUpdate.text)
        if let hash { writer.appendMember("hash", hash) }
        try writer.appendProperties(properties, .event, beside: ContentResource.memberNames)
        return writer.finished()
    }
}

/// A file that a page showed was removed.
public struct ResourceRemoved: DeclaredPayload, Hashable {
    public static let type = "daybook.resource.removed"
    /// The city.
    public var city: String
    /// The language.
    public var language: String
    /// The page's path.
    public var path: String
    /// The URL from which the file was fetched.
    public var url: String

    public var subject: String? { path }
}

// The manifest of a city: its data and the addresses of its images. Comes from a CityManifestSource, goes
// to a DownloadRun. Every field is checked, because a server is not trusted. Spec/model/downloads.md, DL-10.

import Daybook
import Foundation

/// A city's data and the list of its images.
public struct CityManifest: Hashable, Sendable {
    /// One image.
    public struct Image: Hashable, Sendable {
        /// The image's id.
        public var id: String
        /// The image's address: absolute, http or https.
        public var url: URL
        /// The role of the image in the app: hero, gallery or attraction.
        public var kind: CachedImage.Kind
        /// The width in pixels.
        public var width: Int
        /// The height in pixels.
        public var height: Int
        /// The size in bytes, if the manifest states it.
        public var size: Int?
        /// The content's SHA-256, if the manifest states it.
        public var sha256: FileID?

        /// Creates an image.
        public init(
            id: String, url: URL, kind: CachedImage.Kind, width: Int, height: Int, size: Int? = nil,
            sha256: FileID? = nil
        ) {
            self.id = id
            self.url = url
            self.kind = kind
            self.width = width
            self.height = height
            self.size = size
            self.sha256 = sha256
        }
    }

    /// The city's id.
    public var cityId: String
    /// The city's data: the text of a JSON object.
    public var cityData: [UInt8]
    /// Its images, in the manifest's order.
    public var images: [Image]

    /// The greatest number of images of a city.
    public static let imagesMax = 1_000

    /// Creates a manifest, for an app with a source of its own. The manifest is checked when it is used.
    public init(cityId: String, cityData: [UInt8], images: [Image]) {
        self.cityId = cityId
        self.cityData = cityData
        self.images = images
    }

    /// Reads the wire form, DL-10.
    ///
    /// - Parameters:
    ///   - json: the text.
    ///   - cityId: the id of the requested city.
    ///   - url: the manifest's own address; image addresses are relative to it.
    /// - Throws: `DownloadError` with `badManifest`.
    public init(json: [UInt8], cityId: String, from url: URL) throws(DownloadError) {
        do throws(EventError) {
            let fields = try JSONFields(json, path: "manifest")
            guard let city = fields.raw("city") else {
                throw EventError(.invalidData, "manifest.city is missing")
            }
            self.cityId = cityId
            cityData = city
            images = []
            for image in try fields.required(try fields.objects("images"), "images") {
                images.append(try Self.image(image, url))
            }
        } catch { throw Self.invalid(error.detail) }
        try check(city: "manifest.city")
    }

    /// The name of an image, for messages: its member in the manifest. Its id and its address are text from
    /// a server, which no message may contain.
    static func name(ofImage index: Int) -> String { "manifest.images[\(index)]" }

    private static func invalid(_ problem: String) -> DownloadError {
        DownloadError(.badManifest, "the city's manifest is not valid: \(problem)")
    }

    private static func image(_ fields: JSONFields, _ base: URL) throws(EventError) -> Image {
        let address = try fields.identifier("url")
        guard let url = URL(string: address, relativeTo: base)?.absoluteURL else {
            throw EventError(.invalidData, "\(fields.path).url is not a URL")
        }
        guard let kind = CachedImage.Kind(rawValue: try fields.string("type")) else {
            throw EventError(
                .invalidData, "\(fields.path).type is none of hero, gallery, attraction")
        }
        var digest: FileID?
        if fields.raw("sha256") != nil {
            digest = FileID(try fields.string("sha256").lowercased())
            guard digest != nil else {
                throw EventError(
                    .invalidData, "\(fields.path).sha256 is not 64 hexadecimal digits")
            }
        }
        return Image(
            id: try fields.identifier("id"), url: url, kind: kind,
            width: try fields.required(try fields.count("width"), "width"),
            height: try fields.required(try fields.count("height"), "height"),
            size: try fields.count("size"), sha256: digest)
    }

    /// Checks the rules that the types do not express.
    ///
    /// - Parameter member: the name of the city's data, for messages.
    func check(city member: String = "manifest.cityData") throws(DownloadError) {
        func require(_ isTrue: Bool, _ problem: String) throws(DownloadError) {
            guard isTrue else { throw Self.invalid(problem) }
        }
        let id: String
        do throws(EventError) {
            id = try CityData(members: try JSONFields(cityData, path: member)).id
        } catch {
            throw Self.invalid(error.detail)
        }
        try require(EntityID(id) == EntityID(cityId), "it is about another city")
        try require(images.count <= Self.imagesMax, "it has more than \(Self.imagesMax) images")
        try require(
            Set(images.map { EntityID($0.id) }).count == images.count, "two images share an id")
        var contents: [URL: Image] = [:]
        for (index, image) in images.enumerated() {
            let name = Self.name(ofImage: index)
            try require(
                image.width >= 0 && image.height >= 0 && image.size ?? 0 >= 0,
                "\(name) has a negative size, width or height")
            try require(
                Self.isFetchable(image.url), "\(name).url is not one of http or https")
            if let duplicate = contents[image.url] {
                try require(
                    duplicate.size == image.size && duplicate.sha256 == image.sha256,
                    "\(name) has the url of another image and differs in size or sha256")
            }
            contents[image.url] = image
        }
    }

    /// True for an http or https URL without user name and password. No other URL is requested.
    static func isFetchable(_ url: URL) -> Bool {
        guard let origin = HTTPOrigin(url) else { return false }
        return ["http", "https"].contains(origin.scheme) && url.user == nil && url.password == nil
    }
}

/// A source of manifests. An app with a protocol of its own implements one.
public protocol CityManifestSource: Sendable {
    /// Returns the manifest of a city.
    ///
    /// - Throws: `DownloadError` with `unavailable` for a later retry, with any other code to fail the
    ///   job. Any other error counts as one of the connection and is retried.
    func manifest(of cityId: String) async throws -> CityManifest
}

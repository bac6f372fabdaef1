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
    /// The elements of the manifest's list that break a rule, in its order. The city is stored without them.
    private(set) var leftOut: [LeftOut] = []
    /// The elements of the city's own lists that break a rule, each with its place and the reason. `cityData` is
    /// without them.
    public private(set) var notes: [String] = []

    /// An element of the manifest's list without which the city is stored.
    struct LeftOut: Hashable {
        var index: Int
        var image: MissingImage
    }

    /// The greatest number of images of a city.
    public static let imagesMax = 1_000

    /// Creates a manifest, for an app with a source of its own. The manifest is checked when it is used.
    public init(cityId: String, cityData: [UInt8], images: [Image]) {
        self.cityId = cityId
        self.cityData = cityData
        self.images = images
    }

    /// Reads the wire form, DL-10. An image that breaks a rule is left out.
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
            self.init(cityId: cityId, cityData: city, images: [])
            for (index, element) in try fields.objectsAlone("images").enumerated() {
                do throws(EventError) { images.append(try Self.image(element.get(), url)) } catch {
                    let image = try? element.get()
                    leaveOut(
                        index, try? image?.identifier("id"),
                        (try? image?.identifier("url")).flatMap {
                            URL(string: $0, relativeTo: url)
                        },
                        error.detail)
                }
            }
        } catch { throw Self.invalid(error.detail) }
        try check(city: "manifest.city")
    }

    /// The name of an image, for messages: its member in the manifest. Its id and its address are text from
    /// a server, which no message may contain.
    func name(ofImage index: Int) -> String { Self.name(place(ofImage: index)) }

    private static func name(_ place: Int) -> String { "manifest.images[\(place)]" }

    /// The index of an image in the manifest's list. O(images that are left out).
    private func place(ofImage index: Int) -> Int {
        leftOut.reduce(index) { place, fault in fault.index <= place ? place + 1 : place }
    }

    /// Notes an element of the list that breaks a rule. Its place stands for an id and for an address that
    /// cannot be used.
    private mutating func leaveOut(_ place: Int, _ id: String?, _ url: URL?, _ reason: String) {
        let url = url.flatMap { Self.isFetchable($0) ? $0.absoluteString : nil }
        let image = MissingImage(
            id: id ?? Self.name(place), url: url ?? Self.name(place),
            reason: String(reason.prefix(MissingImage.reasonMax)))
        let next = leftOut.firstIndex { $0.index > place } ?? leftOut.count
        leftOut.insert(LeftOut(index: place, image: image), at: next)
    }

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

    /// Checks the rules that the types do not express, and leaves out the images that break one.
    ///
    /// - Parameter member: the name of the city's data, for messages.
    /// - Throws: `DownloadError` with `badManifest` if the city's data cannot be used, or the list is too long.
    mutating func check(city member: String = "manifest.cityData") throws(DownloadError) {
        let id: String
        do throws(EventError) {
            let readable = try CityData.readable(cityData, path: member)
            (cityData, notes) = (readable.json, notes + readable.notes)
            id = try CityData(members: try JSONFields(cityData, path: member)).id
        } catch {
            throw Self.invalid(error.detail)
        }
        guard EntityID(id) == EntityID(cityId) else {
            throw Self.invalid("it is about another city")
        }
        guard images.count + leftOut.count <= Self.imagesMax else {
            throw Self.invalid("it has more than \(Self.imagesMax) images")
        }
        let places = images.indices.map(place(ofImage:))
        var ids: Set<EntityID> = []
        var contents: [URL: Image] = [:]
        for (image, place) in zip(images, places) {
            let isNew = !ids.contains(EntityID(image.id))
            if let problem = Self.problem(image, isNew, contents[image.url]) {
                leaveOut(
                    place, EntityID.isIdentifier(image.id) ? image.id : nil, image.url,
                    Self.name(place) + problem)
            } else {
                ids.insert(EntityID(image.id))
                contents[image.url] = image
            }
        }
        let broken = Set(leftOut.map(\.index))
        images = zip(images, places).filter { !broken.contains($1) }.map(\.0)
        // No two images of a copy have one id, those that it lacks included.
        for index in leftOut.indices
        where !ids.insert(EntityID(leftOut[index].image.id)).inserted {
            leftOut[index].image.id = Self.name(leftOut[index].index)
        }
    }

    /// The rule that an image breaks; nil if it breaks none.
    ///
    /// - Parameters:
    ///   - hasOwnID: whether no image before it has its id.
    ///   - other: an image before it with its address.
    private static func problem(_ image: Image, _ hasOwnID: Bool, _ other: Image?) -> String? {
        guard EntityID.isIdentifier(image.id) else { return ".id is empty or has U+0000" }
        guard hasOwnID else { return ".id is that of an image before it" }
        guard image.width >= 0, image.height >= 0, image.size ?? 0 >= 0 else {
            return " has a negative size, width or height"
        }
        guard isFetchable(image.url) else { return ".url is not one of http or https" }
        guard other.map({ $0.size == image.size && $0.sha256 == image.sha256 }) ?? true else {
            return " has the url of another image and differs in size or sha256"
        }
        return nil
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

// A city to download: invented data, images of random bytes, and their manifest.

import DaybookOffline
import DaybookTestKit
import Foundation

/// A city and its images.
package struct SampleCity: Sendable {
    /// The city's id.
    package var id: String
    /// The content of each image.
    package var images: [[UInt8]]
    /// Whether the manifest has the sizes of images.
    package var includesSizes = true
    /// Whether the manifest has the checksums of images.
    package var includesChecksums = true

    /// Creates a city with images of these sizes.
    package init(_ id: String = "lisbon", sizes: [Int], seed: UInt64 = 1) {
        self.id = id
        var choices = Choices(seed: seed)
        images = sizes.map { choices.bytes(count: $0) }
    }

    /// The path of an image.
    package static func path(_ index: Int) -> String { "/images/\(index).jpg" }

    /// The image at a path.
    package func image(_ path: String) -> [UInt8]? {
        images.indices.first { Self.path($0) == path }.map { images[$0] }
    }

    /// The path of the manifest.
    package var path: String { "/cities/\(id)" }

    /// The manifest. The URLs of images are relative to it.
    package var manifest: String {
        let list = images.indices.map { index in
            let image = images[index]
            var text =
                #"{"id":"i\#(index)","url":"\#(Self.path(index))","#
                + #""type":"\#(index == 0 ? "hero" : "gallery")","width":640,"height":480"#
            if includesSizes { text += #","size":\#(image.count)"# }
            if includesChecksums { text += #","sha256":"\#(FileID(of: image))""# }
            return text + "}"
        }
        return #"{"city":\#(data),"images":[\#(list.joined(separator: ","))]}"#
    }

    /// The city's data as JSON.
    package var data: String {
        String(
            decoding: CityData(
                id: id, name: "Lisbon", country: "Portugal", description: "Hills and trams.",
                costOfLiving: 62.5, internetSpeed: 110, safetyRating: 4.5, climate: "mild"
            ).json, as: UTF8.self)
    }

    /// The reply of a correct server; nil for other paths.
    package func reply(to request: ImageServer.Request) -> ImageServer.Reply? {
        if request.path == path { return .json(manifest) }
        return image(request.path).map {
            .content($0, etag: "\"\(FileID(of: $0).description.prefix(16))\"", to: request)
        }
    }
}

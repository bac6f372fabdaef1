// A city to download: made-up data and images of made-up bytes, and the manifest that describes them.
// Served by ImageServer.

import DaybookOffline
import DaybookTestKit
import Foundation

/// A city and its images.
package struct SampleCity: Sendable {
    /// The city.
    package var id: String
    /// The content of each image, by its place.
    package var images: [[UInt8]]
    /// What the manifest says beside the address of an image.
    package var tellsSizes = true
    package var tellsChecksums = true

    /// Images of certain sizes.
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

    /// The manifest. Images are named as they are seen from it.
    package var manifest: String {
        let list = images.indices.map { index in
            let image = images[index]
            var text =
                #"{"id":"i\#(index)","url":"\#(Self.path(index))","#
                + #""type":"\#(index == 0 ? "hero" : "gallery")","width":640,"height":480"#
            if tellsSizes { text += #","size":\#(image.count)"# }
            if tellsChecksums { text += #","sha256":"\#(FileID(of: image))""# }
            return text + "}"
        }
        return #"{"city":\#(data),"images":[\#(list.joined(separator: ","))]}"#
    }

    /// What is known about the city.
    package var data: String {
        String(
            decoding: CityData(
                id: id, name: "Lisbon", country: "Portugal", description: "Hills and trams.",
                costOfLiving: 62.5, internetSpeed: 110, safetyRating: 4.5, climate: "mild"
            ).json, as: UTF8.self)
    }

    /// The city as a good server sends it; nil for other paths.
    package func reply(to request: ImageServer.Request) -> ImageServer.Reply? {
        if request.path == path { return .json(manifest) }
        return image(request.path).map {
            .content($0, etag: "\"\(FileID(of: $0).description.prefix(16))\"", to: request)
        }
    }
}

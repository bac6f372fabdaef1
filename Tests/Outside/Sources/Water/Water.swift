// The code of the article "Companions" that an app and its widget share.

// Companions-1 begins
import Daybook

public struct GlassDrunk: EventPayload, Codable {
    public static let type = "com.example.glass.drunk"
    public var millilitres: Int

    public init(millilitres: Int) { self.millilitres = millilitres }
}

public struct Water: Projection, Codable {
    public static let name = "water"
    public static let version = 1
    public private(set) var millilitres = 0

    public init() {}

    public mutating func fold(_ event: Event) {
        guard event.type == GlassDrunk.type,
            let glass = try? event.payload(as: GlassDrunk.self)
        else { return }
        millilitres += glass.millilitres
    }
}

public let waterRules: [EventRule] = [.of(GlassDrunk.self, action: "DRINK")]
// Companions-1 ends

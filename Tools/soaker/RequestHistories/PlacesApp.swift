// An app whose API numbers its places: they are added, renamed and removed offline. The app knows a number only from an
// answer. Spec/testing/testing.md.

import Daybook
import DaybookTestKit
import EventSourcing
import Foundation
import Replay

struct PlaceAdded: EventPayload, Codable {
    static let type = "com.example.place.added"
    var place: String
    var name: String
    var subject: String? { place }
}

struct PlaceRenamed: EventPayload, Codable {
    static let type = "com.example.place.renamed"
    var place: String
    var name: String
    var subject: String? { place }
}

struct PlaceRemoved: EventPayload, Codable {
    static let type = "com.example.place.removed"
    var place: String
    var subject: String? { place }
}

/// What the answer to `PlaceAdded` teaches. It stays on the device.
struct PlaceNumbered: EventPayload, Codable {
    static let type = "com.example.place.numbered"
    var place: String
    var number: Int
    var subject: String? { place }
}

struct PlaceNumbers: Projection, Codable {
    static let name = "numbers"
    static let version = 1
    private(set) var numbers: [String: Int] = [:]

    mutating func fold(_ event: Event) {
        guard event.type == PlaceNumbered.type,
            let place = try? event.payload(as: PlaceNumbered.self)
        else { return }
        numbers[place.place] = place.number
    }
}

/// The body of a request, and of an answer.
struct PlaceBody: Codable { var name: String }
struct PlaceAnswer: Codable { var id: Int }

/// The rules of the app.
public enum PlaceRules {
    /// A mistake of the app, with which a search must fail.
    public enum Mistake: Sendable {
        /// A number is guessed, and not taken from an answer.
        case guessesNumbers
        /// The app promises once, and the API ignores keys.
        case assumesKeys
    }

    static func all(_ mistake: Mistake?) -> [EventRule] {
        @Sendable func number(
            of place: String, _ context: RequestContext
        ) throws -> String {
            guard mistake != .guessesNumbers else { return "1" }
            if let number = context.view(PlaceNumbers.self).numbers[place] { return "\(number)" }
            throw RequestNotReady("the place has no number yet")
        }
        return [
            .of(PlaceAdded.self, action: "ADD_PLACE", beginsEntity: true) { place, _ in
                try APIRequest(.post, "places", json: PlaceBody(name: place.name))
            } learning: { answer, place in
                [PlaceNumbered(place: place.place, number: try answer.decode(PlaceAnswer.self).id)]
            },
            .of(PlaceRenamed.self, action: "RENAME_PLACE") { place, context in
                try APIRequest(
                    .put, "places", number(of: place.place, context),
                    json: PlaceBody(name: place.name))
            },
            .of(PlaceRemoved.self, action: "REMOVE_PLACE", endsEntity: true) { place, context in
                try APIRequest(.delete, "places", number(of: place.place, context))
            } verdict: { answer, _ in
                // Removed by the attempt whose answer was lost.
                answer.status == 404 && answer.isJSON ? .duplicate : nil
            },
            .of(PlaceNumbered.self),
        ]
    }
}

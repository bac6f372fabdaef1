// What the app with places reads from its API, and its views. Places are on one list and shops on another; a change of
// either is an event of PlacesApp. Spec/protocol/reading.md.

import EventSourcing
import Foundation
import Replay

/// A list of the API.
package protocol PlaceList: Sendable {
    /// The type of its states.
    static var type: String { get }
    /// Its path.
    static var path: String { get }
}

package enum PlacesList: PlaceList {
    package static let type = "com.example.place.state"
    package static let path = "places"
}

package enum ShopsList: PlaceList {
    package static let type = "com.example.shop.state"
    package static let path = "shops"
}

/// The state of a place or a shop.
package struct ListedState<List: PlaceList>: APIState, Codable {
    package static var type: String { List.type }
    package var place: String
    package var title: String
    package var tag: String?
    package var number: Int64?
    package var isDeleted: Bool
    package var subject: String? { place }
    package var apiVersion: APIVersion { number.map { .number($0) } ?? .tag(tag ?? "") }

    package init(
        place: String, title: String, tag: String? = nil, number: Int64? = nil,
        isDeleted: Bool = false
    ) {
        self.place = place
        self.title = title
        self.tag = tag
        self.number = number
        self.isDeleted = isDeleted
    }
}

package typealias PlaceState = ListedState<PlacesList>
package typealias ShopState = ListedState<ShopsList>

/// What an event says of a place: its title, or nil if it is removed.
struct TitledPlace {
    var place: String
    var title: String?

    private init(_ place: String, _ title: String?) { (self.place, self.title) = (place, title) }

    init?(_ event: Event) {
        guard let titled = try? Self.read(event) else { return nil }
        self = titled
    }

    private static func read(_ event: Event) throws -> TitledPlace? {
        func state<List>(_ type: ListedState<List>.Type) throws -> TitledPlace {
            let state = try event.payload(as: type)
            return TitledPlace(state.place, state.isDeleted ? nil : state.title)
        }
        switch event.type {
        case PlaceAdded.type:
            let added = try event.payload(as: PlaceAdded.self)
            return TitledPlace(added.place, added.name)
        case PlaceRenamed.type:
            let renamed = try event.payload(as: PlaceRenamed.self)
            return TitledPlace(renamed.place, renamed.name)
        case PlaceRemoved.type:
            return TitledPlace(try event.payload(as: PlaceRemoved.self).place, nil)
        case PlaceState.type: return try state(PlaceState.self)
        case ShopState.type: return try state(ShopState.self)
        default: return nil
        }
    }
}

/// The titles, in the order of the log.
package struct Places: CompactableView, Codable {
    package static let name = "places"
    package static let version = 1
    package private(set) var titles: [String: String] = [:]
    /// The LWW timestamps of the last events.
    private var last: [String: LWWTimestamp] = [:]

    package init() {}

    package mutating func fold(_ event: Event) {
        guard let titled = TitledPlace(event) else { return }
        titles[titled.place] = titled.title
        last[titled.place] = event.lwwTimestamp
    }

    package func retention(of event: Event) -> Retention {
        TitledPlace(event).map { .of(event, heldBy: [last[$0.place]]) } ?? .unconcerned
    }
}

/// The titles, of each the one with the greatest LWW timestamp.
package struct NewestPlaces: CompactableView, Codable {
    package static let name = "newest-places"
    package static let version = 1
    package private(set) var titles: [String: String] = [:]
    private var newest: [String: LWWTimestamp] = [:]

    package init() {}

    package mutating func fold(_ event: Event) {
        guard let titled = TitledPlace(event) else { return }
        guard newest[titled.place].map({ $0 < event.lwwTimestamp }) ?? true else { return }
        newest[titled.place] = event.lwwTimestamp
        titles[titled.place] = titled.title
    }

    package func retention(of event: Event) -> Retention {
        TitledPlace(event).map { .of(event, heldBy: [newest[$0.place]]) } ?? .unconcerned
    }
}

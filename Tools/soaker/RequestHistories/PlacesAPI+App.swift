// The rules and the sources of the app that reads its places. After PlacesAPI.

import EventSourcing
import Foundation
import Replay

extension PlacesAPI {
    /// The source that reads the places.
    package var source: PullSource { source(PlacesList.self, manners.places) }

    /// The sources of all lists.
    package var sources: [PullSource] {
        [source] + (manners.shops.map { [source(ShopsList.self, $0)] } ?? [])
    }

    private func source<List: PlaceList>(_ list: List.Type, _ form: Form) -> PullSource {
        let form: PullSource.Form =
            switch form {
            case .since: .since(overlap: 2)
            case .cursor: .cursor
            case .everything: .everything
            }
        return PullSource(of: ListedState<List>.self, form, list: "data") { position in
            APIRequest(
                .get, List.path,
                query: position.text.map { [URLQueryItem(name: "after", value: $0)] } ?? [])
        } next: { answer in
            try answer.decode(NextPage.self).next
        } state: { [self] (row: PlaceRow, context) in
            let numbers = context.view(PlaceNumbers.self).numbers
            let place = numbers.first { "\($0.value)" == row.id }?.key
            // It may be one that this device has added.
            if place == nil, row.id.first?.isNumber == true,
                context.view(Places.self).titles[row.id] == nil, context.hasUnsettledChanges
            {
                throw RequestNotReady("the answers to changes are not known")
            }
            return listed(row, as: place ?? row.id, on: list)
        } deletion: {
            ListedState<List>(place: $0, title: "", isDeleted: true)
        }
    }

    /// The state of a place that a row shows.
    package func placeState(_ row: PlaceRow) -> PlaceState {
        listed(row, as: row.id, on: PlacesList.self)
    }

    private func listed<List: PlaceList>(
        _ row: PlaceRow, as place: String, on list: List.Type
    ) -> ListedState<List> {
        manners.hasTags
            ? ListedState(
                place: place, title: row.title,
                tag: row.deleted ? "gone \(row.rev)" : version(row), isDeleted: row.deleted)
            : ListedState(place: place, title: row.title, number: row.rev, isDeleted: row.deleted)
    }

    private func state(_ row: PlaceRow, as place: String) -> any EventPayload {
        row.id.hasPrefix("s")
            ? listed(row, as: place, on: ShopsList.self)
            : listed(row, as: place, on: PlacesList.self)
    }

    /// The rules of the app.
    ///
    /// - Parameters:
    ///   - matches: whether a change has the version on which it is based.
    ///   - teaches: whether the answer to a change teaches the state.
    package func rules(matches: Bool, teaches: Bool) -> [EventRule] {
        @Sendable func path(_ place: String, _ context: RequestContext) throws -> (
            list: String, id: String
        ) {
            if let number = context.view(PlaceNumbers.self).numbers[place] {
                return (PlacesList.path, "\(number)")
            }
            guard !place.hasPrefix("new") else {
                throw RequestNotReady("the place has no number yet")
            }
            return (place.hasPrefix("s") ? ShopsList.path : PlacesList.path, place)
        }
        @Sendable func headers(_ place: String, _ context: RequestContext) -> [String: String] {
            guard matches else { return [:] }
            let version =
                place.hasPrefix("s")
                ? context.version(of: ShopState.self) : context.version(of: PlaceState.self)
            return version.map { ["If-Match": $0.text] } ?? ["If-None-Match": "*"]
        }
        @Sendable func taught(_ answer: APIAnswer, _ place: String) throws -> [any EventPayload] {
            teaches ? [state(try answer.decode(PlaceRow.self), as: place)] : []
        }
        return [
            .of(PlaceAdded.self, action: "ADD_PLACE", beginsEntity: true) { place, _ in
                try APIRequest(.post, PlacesList.path, json: ["title": place.name])
            } learning: { answer, place in
                let row = try answer.decode(PlaceRow.self)
                guard let number = Int(row.id) else { return [] }
                return [PlaceNumbered(place: place.place, number: number)]
                    + (try taught(answer, place.place))
            },
            .of(PlaceRenamed.self, action: "RENAME_PLACE") { change, context in
                let (list, id) = try path(change.place, context)
                return try APIRequest(
                    .put, list, id, headers: headers(change.place, context),
                    json: ["title": change.name])
            } learning: { answer, change in
                try taught(answer, change.place)
            },
            .of(PlaceRemoved.self, action: "REMOVE_PLACE") { change, context in
                let (list, id) = try path(change.place, context)
                return APIRequest(.delete, list, id, headers: headers(change.place, context))
            } learning: { answer, change in
                try taught(answer, change.place)
            },
            .of(PlaceNumbered.self), .of(PlaceState.self), .of(ShopState.self),
        ]
    }
}

/// The cursor of the next page.
private struct NextPage: Decodable {
    var next: String?
}

// What an app asks about saved cities, now and as it changes.

import EventSourcing

extension CityCommands {
    /// The cities that a user has saved, sorted. O(cities).
    public func saved(by userId: String) -> ViewQuery<[String]> {
        store.query(CitiesView.self) { cities in
            cities.cityIDs.filter { cities.isSaved($0, by: userId) }
        }
    }

    /// Who has saved a city, sorted. O(users of the city).
    public func savers(of cityId: String) -> ViewQuery<[String]> {
        store.query(CitiesView.self) { $0.savers(of: cityId) }
    }
}

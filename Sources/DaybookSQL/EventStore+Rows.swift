// Rows in SQL from the events of a store. Spec/model/sql.md.

@_exported import Daybook
import Foundation
import GRDB

extension EventStore {
    /// Computes the tables of projections in a database of the app, and follows the log from then on.
    ///
    /// ```swift
    /// let rows = try await store.project(into: pool, [TripRows()])
    /// let planned = try await store.append(TripPlanned(trip: "spring", stop: "north pier"))
    /// try await rows.reach(planned.position)
    /// let trips = try await pool.read { try Trip.fetchAll($0) }
    /// ```
    ///
    /// Returns when the tables exist; those of another version, or with missing ones, when their rows are computed
    /// anew and `reach` returns. Rows are computed in the background; `ProjectedRows.reach(_:)` waits for them. Rows
    /// that the log does not match, and the first rows of a long log, are computed beside the database, and replace
    /// the tables with what the app has added to them: see `RebuildReason`. A log that has nothing new causes no
    /// write. A database belongs to the rows of one log.
    ///
    /// - Parameters:
    ///   - database: the database. Its other tables are not touched. With a `DatabasePool`, readers never wait.
    ///   - projections: the projections, all that the database has of this log.
    /// - Throws: `EventError` (`refused`) for no or invalid projections, and for tables of views that the store does
    ///   not have, naming them; what `create` throws;
    ///   `DatabaseError`; `LogError`.
    public nonisolated func project(
        into database: any DatabaseWriter, _ projections: [any SQLProjection]
    ) async throws -> ProjectedRows {
        let projections = projections.map { Projecting($0, catalogue) }
        try check(projections)
        let needing = projections.filter { !$0.allowsCompaction }
        await setNeeds(
            ofRowsIn: URL(filePath: database.path).lastPathComponent,
            Dictionary(uniqueKeysWithValues: needing.map { ($0.name, $0.types ?? []) }))
        let rows = ProjectedRows(self, database, projections)
        try await rows.open()
        return rows
    }

    private nonisolated func check(_ projections: [Projecting]) throws(EventError) {
        guard !projections.isEmpty else { throw EventError(.refused, "no projection is given") }
        var names: Set<String> = []
        for projection in projections {
            let name = projection.name
            guard !name.isEmpty else { throw EventError(.refused, "a projection has no name") }
            guard names.insert(name).inserted else {
                throw EventError(.refused, "two projections have the name \(name)")
            }
            guard projection.follower?.isView(of: self) ?? true else {
                throw EventError(
                    .refused,
                    "the store has no view \(name); pass it to open, or leave its table out")
            }
            guard projection.types != [] else {
                throw EventError(.refused, "the projection \(name) names no event type")
            }
        }
    }
}

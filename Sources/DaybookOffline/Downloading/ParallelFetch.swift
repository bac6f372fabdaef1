// Runs the fetches of one download at the same time, up to a limit. Used by DownloadRun for the images of
// a city and by LearningDownloads for the files of a unit. Spec/model/downloads.md.

/// Fetches every item, at most `limit` at a time, in their order.
///
/// After the first failure no fetch begins any more and those under way are cancelled. A fetch that
/// succeeds all the same is received like any other, so its file is not orphaned.
///
/// - Parameters:
///   - items: the items to fetch.
///   - limit: fetches at a time; at least one runs.
///   - fetch: fetches one item.
///   - receive: called with each fetched item, one at a time. If it throws, that is a failure.
/// - Throws: the first error that `fetch` or `receive` threw.
nonisolated(nonsending) func fetchInParallel<Item: Sendable, Fetched: Sendable>(
    _ items: [Item], atOnce limit: Int,
    _ fetch: @escaping @Sendable (Item) async throws -> Fetched,
    receive: (Fetched) async throws -> Void
) async throws {
    try await withThrowingTaskGroup(of: Fetched.self) { group in
        var waiting = items.makeIterator()
        func begin() {
            guard let item = waiting.next() else { return }
            group.addTask { try await fetch(item) }
        }
        for _ in 0..<max(1, limit) { begin() }
        var failure: (any Error)?
        while let result = await group.nextResult() {
            do {
                try await receive(result.get())
                if failure == nil { begin() }
            } catch  where failure == nil {
                failure = error
                group.cancelAll()
            } catch {}
        }
        if let failure { throw failure }
    }
}

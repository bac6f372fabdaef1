// Runs the fetches of one download at the same time, up to a limit: the images of a city, the files of a
// unit. Spec/model/downloads.md.

/// Fetches every item, at most `limit` at a time, in their order.
///
/// After the first failure no further fetch begins, and the running ones are cancelled. A fetch that
/// succeeds nevertheless is received like any other, so that its file is not orphaned.
///
/// - Parameters:
///   - items: the items to fetch.
///   - limit: fetches at a time; at least one runs.
///   - fetch: fetches one item.
///   - receive: called with each fetched item, one at a time. Its error counts as a failure.
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

// Fetches images that are not cached, once for all callers that wait for the same image. Part of ImageCache.
// Spec/model/images.md, IMG-12 to IMG-14.

import Daybook

/// A fetch in progress.
struct ImageFetching {
    let key: ImageKey
    /// The latest event that ends images of the asset or album, at the start of the fetch. The fetched
    /// content is older than any later such event.
    let endingTimestamp: LWWTimestamp?
    var waiters: [Int: CheckedContinuation<[UInt8], any Error>] = [:]
    var task: Task<Void, Never>?
}

extension ImageCache {
    /// Returns the bytes of an image: from the cache, or else fetched and stored.
    ///
    /// Concurrent calls for one image share one fetch and its result. A cancelled caller stops waiting; the
    /// fetch is cancelled when no caller waits. If the asset is removed, or the album changes, during the
    /// fetch, the callers so far receive the content and it is not stored; later callers fetch again. Content
    /// that cannot be stored, on a full disk for example, is returned nevertheless; so is a web page or an empty
    /// body, which a portal or a server has sent in the place of the image.
    ///
    /// - Parameters:
    ///   - kind: the kind of the image.
    ///   - id: the id of the asset, or for the thumbnail of an album that of the album.
    ///   - fetch: fetches the bytes.
    /// - Throws: what `fetch` throws, to every waiting caller; the next caller fetches again.
    ///   `CancellationError` if the caller is cancelled.
    public func image(
        _ kind: ImageKind, _ id: String,
        fetch: @escaping @Sendable () async throws -> [UInt8]
    ) async throws -> [UInt8] {
        if let content = await image(kind, id) { return content }
        try Task.checkCancellation()
        let key = ImageKey(kind, id)
        lastFetch += 1
        let waiter = lastFetch
        return try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { continuation in
                join(key, waiter, continuation, fetch)
            }
        } onCancel: {
            Task { await self.cancelWaiter(waiter, key) }
        }
    }

    private func join(
        _ key: ImageKey, _ waiter: Int, _ continuation: CheckedContinuation<[UInt8], any Error>,
        _ fetch: @escaping @Sendable () async throws -> [UInt8]
    ) {
        let endingTimestamp = view.sourceEndingTimestamp(key.kind, key.id)
        if let number = joinable[key], let fetch = fetches[number],
            fetch.endingTimestamp == endingTimestamp
        {
            fetches[number]?.waiters[waiter] = continuation
            return
        }
        lastFetch += 1
        let number = lastFetch
        var fetching = ImageFetching(key: key, endingTimestamp: endingTimestamp)
        fetching.waiters[waiter] = continuation
        fetching.task = Task { await self.runFetch(number, key, endingTimestamp, fetch) }
        fetches[number] = fetching
        joinable[key] = number
    }

    private func runFetch(
        _ number: Int, _ key: ImageKey, _ endingTimestamp: LWWTimestamp?,
        _ fetch: @Sendable () async throws -> [UInt8]
    ) async {
        let result: Result<[UInt8], any Error>
        do {
            let content = try await fetch()
            // A cancelled fetch has no waiting caller, and a later fetch may have newer content.
            if !Task.isCancelled {
                try? await store(content, key.kind, key.id.string) { view in
                    view.sourceEndingTimestamp(key.kind, key.id) == endingTimestamp
                }
            }
            result = .success(content)
        } catch { result = .failure(error) }
        let fetching = fetches.removeValue(forKey: number)
        if joinable[key] == number { joinable[key] = nil }
        for waiter in (fetching?.waiters ?? [:]).values { waiter.resume(with: result) }
    }

    /// The number of callers that wait for fetches.
    var waiterCount: Int { fetches.values.reduce(0) { $0 + $1.waiters.count } }

    /// Removes a cancelled caller, and cancels its fetch if no other caller waits.
    private func cancelWaiter(_ waiter: Int, _ key: ImageKey) {
        for (number, fetching) in fetches where fetching.waiters[waiter] != nil {
            let continuation = fetches[number]?.waiters.removeValue(forKey: waiter)
            if fetches[number]?.waiters.isEmpty ?? false {
                fetching.task?.cancel()
                if joinable[key] == number { joinable[key] = nil }
            }
            continuation?.resume(throwing: CancellationError())
        }
    }
}

// Fetching what is not cached, once for all who wait for it. Part of ImageCache. Spec/model/images.md,
// IMG-12 to IMG-14.

import Daybook

/// A fetch that is under way.
struct ImageFetching {
    let key: ImageKey
    /// What had ended images of the asset or album when it began: what is fetched is older than
    /// whatever ends them later.
    let ended: Stamp?
    var waiters: [Int: CheckedContinuation<[UInt8], any Error>] = [:]
    var task: Task<Void, Never>?
}

extension ImageCache {
    /// The bytes of an image: from the cache, or else fetched and stored.
    ///
    /// However many ask for an image at once, it is fetched once, and all get what was fetched. Who
    /// is cancelled waits no longer; the fetch is cancelled when nobody waits. If the asset is
    /// removed, or the album changes, while it is fetched, those who asked before get what was
    /// fetched and it is not stored; who asks later fetches anew. What cannot be stored, on a full
    /// disk for example, is returned all the same.
    ///
    /// - Parameters:
    ///   - kind: what the image is for.
    ///   - id: the asset, or for the thumbnail of an album the album.
    ///   - fetch: gets the bytes from wherever they are.
    /// - Throws: what `fetch` throws, for all who wait; the next who asks fetches anew.
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
            Task { await self.leave(key, waiter) }
        }
    }

    private func join(
        _ key: ImageKey, _ waiter: Int, _ continuation: CheckedContinuation<[UInt8], any Error>,
        _ fetch: @escaping @Sendable () async throws -> [UInt8]
    ) {
        let ended = view.ended(of: key.kind, key.id)
        if let number = joinable[key], let fetch = fetches[number], fetch.ended == ended {
            fetches[number]?.waiters[waiter] = continuation
            return
        }
        lastFetch += 1
        let number = lastFetch
        var fetching = ImageFetching(key: key, ended: ended)
        fetching.waiters[waiter] = continuation
        fetching.task = Task { await self.run(number, key, ended, fetch) }
        fetches[number] = fetching
        joinable[key] = number
    }

    private func run(
        _ number: Int, _ key: ImageKey, _ ended: Stamp?,
        _ fetch: @Sendable () async throws -> [UInt8]
    ) async {
        let result: Result<[UInt8], any Error>
        do {
            let content = try await fetch()
            // Nobody waits any more for what was cancelled, and a later one may be newer.
            if !Task.isCancelled {
                try? await store(content, key.kind, key.id.string) { view in
                    view.ended(of: key.kind, key.id) == ended
                }
            }
            result = .success(content)
        } catch { result = .failure(error) }
        let fetching = fetches.removeValue(forKey: number)
        if joinable[key] == number { joinable[key] = nil }
        for waiter in (fetching?.waiters ?? [:]).values { waiter.resume(with: result) }
    }

    /// How many wait for fetches.
    var waiterCount: Int { fetches.values.reduce(0) { $0 + $1.waiters.count } }

    /// Somebody waits no longer.
    private func leave(_ key: ImageKey, _ waiter: Int) {
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

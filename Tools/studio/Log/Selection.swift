// The events that a filter selects, in the order in which they are shown. A search for text reads the log in
// the background, in that order, so that its first hits are there before it ends.

import Foundation
import LogFormat
import LogStorage
import Synchronization

/// The events that a filter selects.
final class Selection: Sendable {
    let filter: EventFilter
    let isNewestFirst: Bool
    /// The beginning of the index that the ordinals are of.
    let beginning: Int
    private let log: FollowedLog
    private let state = Mutex(State())

    private struct State {
        var hits = Hits.all(0)
        var isComplete = true
        /// The number of events that were read or, without a text, looked at.
        var read = 0
        /// The number of events of the index that the selection covers.
        var covered = 0
        var statusVersion = 0
        /// True while the first search runs. A later one, of new events, adds to its hits.
        var isFirstSearch = false
        /// The number of searches that were started.
        var search = 0
        /// The error that ended a search.
        var failure: APIError?
    }

    /// Ordinals.
    private enum Hits {
        /// The first so many events of the index.
        case all(Int)
        /// Ascending.
        case ascending([UInt32])
        /// In the order shown, as a search found them.
        case found([UInt32])

        var count: Int {
            switch self {
            case .all(let count): count
            case .ascending(let list), .found(let list): list.count
            }
        }
    }

    /// A part of a selection.
    struct Page {
        var total: Int
        var isComplete: Bool
        var read: Int
        var ordinals: [Int]
    }

    /// The number of events that a search reads before it publishes its first hits, and at most later.
    private static let portions = 4_096...65_536
    /// Rows far from each other take a frame each: a screen of them is read before the search has ended.
    private static let rowsWhileSearching = 50

    init(
        _ filter: EventFilter, newestFirst: Bool, of log: FollowedLog, since beginning: Int
    ) {
        self.beginning = beginning
        self.filter = filter
        self.isNewestFirst = newestFirst
        self.log = log
    }

    /// Brings the selection up to the end of the index. Without a text it is complete on return.
    ///
    /// - Throws: `APIError` `changed`.
    func refresh() throws {
        let (count, version) = try log.withState(since: beginning) {
            ($0.index.count, $0.statusVersion)
        }
        let first = state.withLock { state -> Int? in
            let isStale =
                state.covered != count || state.failure != nil
                || (!filter.statuses.isEmpty && state.statusVersion != version)
            let isSearching = filter.text != nil && !state.isComplete && filter.statuses.isEmpty
            guard isStale, !isSearching else { return nil }
            // A search with a status, or one that failed, begins anew.
            let isExtended =
                filter.text != nil && filter.statuses.isEmpty && state.failure == nil
            let first = isExtended ? state.covered : 0
            state.covered = count
            state.statusVersion = version
            state.failure = nil
            // Another request must not take the hits so far for all.
            state.isComplete = false
            return first
        }
        guard let first else { return }
        let candidates = try log.withState(since: beginning) { state in
            filter.ordinals(in: state.index, from: first) { state.status($0) }
        }
        guard let text = filter.text else {
            state.withLock { state in
                state.hits = candidates.map { .ascending($0) } ?? .all(count)
                state.read = count
                state.isComplete = true
            }
            return
        }
        search(
            text, in: candidates ?? (UInt32(first)..<UInt32(count)).map { $0 }, extending: first > 0
        )
    }

    private func search(_ text: [UInt8], in candidates: [UInt32], extending: Bool) {
        let number = state.withLock { state in
            state.isComplete = false
            state.isFirstSearch = !extending
            state.search += 1
            if !extending {
                state.hits = .found([])
                state.read = 0
            }
            return state.search
        }
        Thread.detachNewThread { [self] in
            let search = TextSearch(lowercased: text)
            var start = 0
            var portion = Self.portions.lowerBound
            // The hits that are newer than those of an earlier search, for a list with the newest first.
            var newer: [UInt32] = []
            while start < candidates.count {
                let end = min(candidates.count, start + portion)
                portion = min(2 * portion, Self.portions.upperBound)
                let part =
                    isNewestFirst
                    ? candidates[(candidates.count - end)..<(candidates.count - start)]
                    : candidates[start..<end]
                let found: [UInt32]
                do { found = try hits(search, in: part) } catch {
                    return fail(APIError(error), search: number)
                }
                let isCurrent = state.withLock { state in
                    guard state.search == number, case .found(let hits) = state.hits else {
                        return false
                    }
                    if extending, isNewestFirst {
                        newer += found
                    } else {
                        state.hits = .found(hits + found)
                    }
                    state.read += part.count
                    return true
                }
                guard isCurrent else { return }
                start = end
            }
            state.withLock { state in
                guard state.search == number, case .found(let hits) = state.hits else { return }
                if !newer.isEmpty { state.hits = .found(newer + hits) }
                state.isComplete = true
                state.isFirstSearch = false
            }
        }
    }

    private func fail(_ error: APIError, search number: Int) {
        state.withLock { state in
            guard state.search == number else { return }
            state.failure = error
            state.isComplete = true
            state.isFirstSearch = false
        }
    }

    /// The ordinals of the lines with the text, in the order shown.
    private func hits(_ search: TextSearch, in part: ArraySlice<UInt32>) throws -> [UInt32] {
        let positions = try log.withState(since: beginning) { state in
            part.map { state.index.positions[Int($0)] }
        }
        var hits: [UInt32] = []
        var next = 0
        try LineReading.forEachLine(at: positions, in: log.folder) { prefix, line in
            while positions[next] < prefix.position.rawValue { next += 1 }
            if search.matches(line) { hits.append(part[part.startIndex + next]) }
        }
        return isNewestFirst ? hits.reversed() : hits
    }

    /// A page of the selection. While a search runs, waits up to 0.2 s for its rows; while the first
    /// one runs, for one row, and returns at most 50.
    ///
    /// - Throws: the error that ended the search.
    func page(offset: Int, limit: Int) throws -> Page {
        let deadline = Date(timeIntervalSinceNow: 0.2)
        while true {
            var isFirstSearch = false
            let page = try state.withLock { state in
                if let failure = state.failure { throw failure }
                isFirstSearch = state.isFirstSearch
                let limit = isFirstSearch ? min(limit, Self.rowsWhileSearching) : limit
                let range = min(offset, state.hits.count)..<min(offset + limit, state.hits.count)
                return Page(
                    total: state.hits.count, isComplete: state.isComplete, read: state.read,
                    ordinals: ordinals(state.hits, range))
            }
            let isEnough = isFirstSearch ? !page.ordinals.isEmpty : page.ordinals.count == limit
            if page.isComplete || isEnough || Date() > deadline { return page }
            Thread.sleep(forTimeInterval: 0.01)
        }
    }

    private func ordinals(_ hits: Hits, _ range: Range<Int>) -> [Int] {
        let last = hits.count - 1
        return range.map { offset in
            switch hits {
            case .all: isNewestFirst ? last - offset : offset
            case .ascending(let list): Int(list[isNewestFirst ? last - offset : offset])
            case .found(let list): Int(list[offset])
            }
        }
    }

    /// The offset of an event in the list; nil if it is not selected, or not found yet.
    func offset(of ordinal: Int) -> Int? {
        state.withLock { state in
            let last = state.hits.count - 1
            switch state.hits {
            case .all(let count):
                guard ordinal < count else { return nil }
                return isNewestFirst ? last - ordinal : ordinal
            case .ascending(let list):
                guard let index = list.firstIndex(of: UInt32(ordinal)) else { return nil }
                return isNewestFirst ? last - index : index
            case .found(let list): return list.firstIndex(of: UInt32(ordinal))
            }
        }
    }

    /// All selected ordinals, ascending, and whether the selection is complete.
    ///
    /// - Throws: the error that ended the search.
    func all() throws -> (ordinals: [UInt32], isComplete: Bool) {
        try state.withLock { state in
            if let failure = state.failure { throw failure }
            return switch state.hits {
            case .all(let count): ((0..<UInt32(count)).map { $0 }, state.isComplete)
            case .ascending(let list): (list, state.isComplete)
            case .found(let list): (list.sorted(), state.isComplete)
            }
        }
    }
}

/// The selections used last.
final class Selections: Sendable {
    private let log: FollowedLog
    private let recent = Mutex<[Selection]>([])
    private static let recentMax = 8

    init(_ log: FollowedLog) { self.log = log }

    /// The selection of a filter, up to the end of the index.
    ///
    /// - Throws: `APIError` `changed`.
    func selection(_ filter: EventFilter, newestFirst: Bool) throws -> Selection {
        let beginning = log.withState { $0.beginning }
        let selection = recent.withLock { recent in
            recent.removeAll { $0.beginning != beginning }
            if let index = recent.firstIndex(where: {
                $0.filter == filter && $0.isNewestFirst == newestFirst
            }) {
                recent.append(recent.remove(at: index))
            } else {
                recent.append(
                    Selection(filter, newestFirst: newestFirst, of: log, since: beginning))
                if recent.count > Self.recentMax { recent.removeFirst() }
            }
            return recent[recent.count - 1]
        }
        try selection.refresh()
        return selection
    }
}

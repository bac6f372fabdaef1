// The states of a view at up to 2,000 positions, kept while the log is folded, for a page without a server.

import DaybookOffline
import EventSourcing
import LogFormat

/// The history of one view.
struct ViewHistory {
    /// A state, and which rows may differ from those of the state before.
    struct Point {
        var position: Position
        var state: any ListableView
        /// The keys of the rows that may have changed; nil if any row may have.
        var keys: Set<[EntityID]>?
    }

    /// Ascending. The states share what did not change between them.
    private(set) var points: [Point] = []
    /// The state after the last event, with what changed since the last point.
    private var next: Point?
    /// The number of changes from one point to the next.
    private var spacing = 1
    private var changes = 0

    private static let pointsMax = 2_000

    /// Appends the state after an event.
    ///
    /// - Parameters:
    ///   - isChange: true if the event changed the state.
    ///   - compacted: the position before which states are not shown.
    /// - Complexity: O(1) amortized.
    mutating func append(
        _ event: Event, _ state: any ListableView, isChange: Bool, after compacted: Position
    ) {
        if let next, next.position <= compacted, event.position > compacted {
            // The first state of a compacted log is the one at that position.
            points.append(Point(position: compacted, state: next.state, keys: next.keys))
            self.next = nil
        }
        var keys = next.map(\.keys) ?? []
        let changed = (state as? any KeyedView)?.rowKeys(changedBy: event)
        if let changed {
            keys?.formUnion(changed.map { $0.map(EntityID.init) })
        } else {
            keys = nil
        }
        let point = Point(
            position: isChange ? event.position : next?.position ?? event.position, state: state,
            keys: keys)
        next = point
        guard isChange, event.position > compacted else { return }
        changes += 1
        guard changes.isMultiple(of: spacing) else { return }
        points.append(point)
        next = nil
        if points.count > Self.pointsMax {
            points = Self.thinned(points, spacing: 2)
            spacing *= 2
        }
    }

    /// All points, with the last state.
    ///
    /// - Parameter compacted: the position before which states are not shown.
    func finished(after compacted: Position) -> [Point] {
        guard var next else { return points }
        next.position = max(next.position, compacted)
        return points + [next]
    }

    /// The last one of each so many points, with the keys of those that are left out before it.
    static func thinned(_ points: [Point], spacing: Int) -> [Point] {
        stride(from: 0, to: points.count, by: spacing).map { start in
            let merged = points[start..<min(start + spacing, points.count)]
            var point = merged[merged.endIndex - 1]
            point.keys = merged.reduce([] as Set<[EntityID]>?) { keys, point in
                keys.flatMap { keys in point.keys.map { keys.union($0) } }
            }
            return point
        }
    }
}

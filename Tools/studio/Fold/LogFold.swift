// The fold of a whole log: the outbox, the retracted events, and the states of the views at some positions,
// from which the state at any position is folded in little time.

import DaybookOffline
import EventSourcing
import Foundation
import LogFormat
import LogStorage

/// The states of a log's views and outbox at its end, and at up to 64 positions before.
struct LogFold {
    /// The last position folded.
    var last = Position.zero
    /// See `LogReader.compactedThrough()`; nil until it was read.
    var compactedThrough: Position?
    private(set) var discarded = DiscardedEvents()
    private(set) var outbox = Outbox()
    /// The plot of what waits for the server, up to the last event folded.
    var lag: [LagPoint] { lagPoints + (lastTime.map { [lagPoint(at: $0)] } ?? []) }
    /// Ascending. The states share what did not change between them.
    private(set) var snapshots: [Snapshot] = [
        Snapshot(position: .zero, states: OfflineModel.views.map { $0.init() as any ListableView })
    ]

    /// The positions of the events that changed each view, ascending, in the order of `OfflineModel.views`.
    private var changes: [[UInt64]] = OfflineModel.views.map { _ in [] }
    /// The histories of the views in the order of `OfflineModel.views`, if they are kept.
    private(set) var histories: [ViewHistory]
    private var lagPoints: [LagPoint] = []
    private var lastTime: Timestamp?
    private var states: [any ListableView] = OfflineModel.views.map { $0.init() }
    private var recordsRead = Position.zero
    private var count = 0
    private var snapshotSpacing = 1_024
    private var lagSpacing = 16

    private static let snapshotsMax = 64
    private static let lagPointsMax = 300
    /// The numbers of the views that fold a type, by its name.
    private static let foldingViews: [String: [Int]] = {
        var views: [String: [Int]] = [:]
        for (number, view) in OfflineModel.views.enumerated() {
            for type in view.eventTypes ?? [] { views[type, default: []].append(number) }
        }
        return views
    }()
    /// The numbers of the views that fold all types.
    private static let foldingAll = OfflineModel.views.indices.filter {
        OfflineModel.views[$0].eventTypes == nil
    }

    /// Creates a fold of no events.
    ///
    /// - Parameter keepsHistories: true to keep the states of each view at up to 2,000 positions.
    init(keepsHistories: Bool = false) {
        histories = keepsHistories ? OfflineModel.views.map { _ in ViewHistory() } : []
    }

    /// The states of all views at a position, in the order of `OfflineModel.views`.
    struct Snapshot {
        var position: Position
        var states: [any ListableView]
    }

    /// A point of the plot of what waits for the server.
    struct LagPoint {
        var time: Timestamp
        var pending: Int
        /// The time of the oldest waiting event; nil if none waits.
        var oldest: Timestamp?
    }

    /// The waiting action at a position.
    func entry(at position: Position) -> OutboxEntry? { outbox.entry(at: position) }

    /// The newest snapshot at or before a position.
    func snapshot(before position: Position) -> Snapshot {
        snapshots.last { $0.position <= position } ?? snapshots[0]
    }

    /// The positions of the events that changed a view after one position, through another, ascending.
    /// O(log events).
    func changes(
        of view: Int, after first: Position, through last: Position
    ) -> ArraySlice<UInt64> {
        let positions = changes[view]
        func offset(after position: Position) -> Int {
            positions.partitioningIndex { $0 > position.rawValue }
        }
        let start = offset(after: first)
        return positions[start..<max(start, offset(after: last))]
    }

    /// Reads the records of retracted and reinstated events. If they change what was folded, the fold begins
    /// anew.
    mutating func readRecords(_ positions: [UInt64], in folder: LogFolder) throws {
        var changed: [Position] = []
        var discarded = discarded
        let unread = positions.filter { $0 > recordsRead.rawValue }
        try LineReading.forEachLine(at: unread, in: folder) { _, line in
            let event = try LogReader.event(
                line, OfflineModel.catalogue, directory: folder.directory)
            changed += discarded.apply(event)
        }
        recordsRead = unread.last.map { Position($0) } ?? recordsRead
        self.discarded = discarded
        guard changed.contains(where: { $0 <= last }) else { return }
        let (read, through) = (recordsRead, compactedThrough)
        self = LogFold(keepsHistories: !histories.isEmpty)
        (self.discarded, recordsRead, compactedThrough) = (discarded, read, through)
    }

    /// Folds the events up to a position, at which there is an event or the log was compacted.
    mutating func advance(through end: Position, in folder: LogFolder) throws {
        let catalogue = folder.catalogue
        var cursor = folder.cursor(after: last)
        try cursor.poll(through: end) { prefix, line in
            fold(try LogReader.event(line, catalogue, directory: folder.directory))
            // Not beyond, where the log may be damaged.
            return last < end
        }
        last = max(last, end)
    }

    private mutating func fold(_ event: Event) {
        count += 1
        last = event.position
        lastTime = event.time
        outbox.fold(event)
        if let counted = discarded.counted(event, by: OfflineModel.catalogue) {
            let event = OfflineModel.catalogue.newestForm(of: counted)
            for view in Self.foldingViews[event.type] ?? [] { fold(event, into: view) }
            for view in Self.foldingAll { fold(event, into: view) }
        }
        if count % snapshotSpacing == 0 {
            snapshots.append(Snapshot(position: last, states: states))
            if snapshots.count > Self.snapshotsMax {
                snapshots = thinned(snapshots)
                snapshotSpacing *= 2
            }
        }
        if count % lagSpacing == 0 {
            lagPoints.append(lagPoint(at: event.time))
            if lagPoints.count > Self.lagPointsMax {
                lagPoints = thinned(lagPoints)
                lagSpacing *= 2
            }
        }
    }

    private mutating func fold(_ event: Event, into view: Int) {
        states[view].fold(event)
        let isChange = states[view].isChanged(byLast: event)
        if isChange { changes[view].append(event.position.rawValue) }
        guard !histories.isEmpty else { return }
        histories[view].append(
            event, states[view], isChange: isChange, after: compactedThrough ?? .zero)
    }

    private func lagPoint(at time: Timestamp) -> LagPoint {
        LagPoint(time: time, pending: outbox.count, oldest: outbox.entries.first?.timestamp)
    }
}

extension Projection {
    /// True if the event that was folded last changed the state: it set a value that the state holds now, or
    /// deleted a note or a download job, possibly once more. An event that is older than those values, or whose
    /// data is invalid, changes nothing.
    fileprivate func isChanged(byLast event: Event) -> Bool {
        guard let view = self as? any CompactableView else { return true }
        return switch view.retention(of: event) {
        case .needed(let reason): reason != .notUnderstood
        case .superseded, .unconcerned: false
        }
    }
}

/// Every second element, beginning with the first.
private func thinned<Element>(_ elements: [Element]) -> [Element] {
    elements.indices.filter { $0.isMultiple(of: 2) }.map { elements[$0] }
}

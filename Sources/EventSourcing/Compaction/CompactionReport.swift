// The result of a compaction: what it removed, what it kept, and why. Spec/format/compaction.md, CMP-28.

import LogFormat

/// The result of a compaction or of a dry run.
public struct CompactionReport: Hashable, Sendable {
    /// One event type.
    public struct TypeReport: Hashable, Sendable {
        /// The type.
        public var type: String
        /// The number of events of the type.
        public var events = 0
        /// The number of removed events.
        public var removed = 0
        /// The bytes of their lines, newlines included, before compression.
        public var freedBytes = 0
        /// The number of kept events, by reason.
        public var kept: [KeptReason: Int] = [:]
        /// The bytes of the kept events' lines by reason, newlines included, before compression.
        public var keptBytes: [KeptReason: Int] = [:]

        /// Creates an empty report.
        public init(type: String) { self.type = type }
    }

    /// The events that were kept for one view.
    public struct KeptForView: Hashable, Sendable {
        /// The view.
        public var view: String
        /// The number of events that would have been removed without this view and others like it.
        public var events = 0
        /// The bytes of their lines, newlines included, before compression.
        public var bytes = 0

        /// Creates an empty entry.
        public init(view: String) { self.view = view }
    }

    /// The types, by name.
    public var types: [TypeReport] = []
    /// The bytes of all segments on disk before.
    public var bytesBefore = 0
    /// The bytes of all segments on disk afterwards; for a dry run, an estimate.
    public var bytesAfter = 0
    /// The number of segments examined.
    public var segments = 0
    /// The number of segments rewritten; for a dry run, of those that would be.
    public var segmentsRewritten = 0
    /// The position before which states can no longer be rebuilt.
    public var compactedThrough = Position.zero
    /// The number of removed ids that the log still knows.
    public var idsRemembered = 0
    /// The last position that could be removed: every stored state of every view has folded it.
    public var limit = Position.zero
    /// The views that limit the compaction: their stored states end before the others.
    public var heldBackBy: [String] = []
    /// The views that need events which no other view needs, by name. They do not state which events they
    /// no longer need (`Projection.allowsCompaction`), so the events kept for them grow with the log.
    public var keptForViews: [KeptForView] = []
    /// True for a dry run: nothing was changed.
    public var isDryRun = false

    /// Creates an empty report.
    public init() {}

    /// The number of removed events of all types.
    public var removed: Int { types.reduce(0) { $0 + $1.removed } }
    /// The bytes of their lines before compression.
    public var freedBytes: Int { types.reduce(0) { $0 + $1.freedBytes } }
    /// The number of kept events, by reason.
    public var kept: [KeptReason: Int] {
        types.reduce(into: [:]) { $0.merge($1.kept, uniquingKeysWith: +) }
    }
    /// The bytes of the kept events' lines by reason, before compression.
    public var keptBytes: [KeptReason: Int] {
        types.reduce(into: [:]) { $0.merge($1.keptBytes, uniquingKeysWith: +) }
    }
}

extension CompactionReport: CustomStringConvertible {
    /// The numbers of removed events and rewritten segments, and the bytes before and afterwards.
    public var description: String {
        let events = types.reduce(0) { $0 + $1.events }
        var text = isDryRun ? "dry run: " : ""
        text += "\(removed) of \(events.counted("event")) removed"
        text += ", \(segmentsRewritten) of \(segments.counted("segment")) rewritten"
        text += "; \(bytesBefore.counted("byte")) before, \(bytesAfter) afterwards"
        if !heldBackBy.isEmpty { text += "; held back by \(heldBackBy.joined(separator: ", "))" }
        return text
    }
}

/// The counts of classified events.
struct CompactionTally {
    private(set) var types: [String: CompactionReport.TypeReport] = [:]
    private(set) var lineBytes = 0
    private(set) var freedBytes = 0
    private(set) var removed = 0
    private var views: [String: CompactionReport.KeptForView] = [:]

    var keptForViews: [CompactionReport.KeptForView] {
        views.values.sorted { EntityID($0.view) < EntityID($1.view) }
    }

    mutating func count(_ event: Event, as verdict: CompactionVerdict) {
        let bytes = event.lineBytes + 1
        lineBytes += bytes
        var row = types[event.type] ?? CompactionReport.TypeReport(type: event.type)
        row.events += 1
        switch verdict {
        case .kept(let reason): row.keep(1, bytes, reason)
        case .keptForViews(let names):
            row.keep(1, bytes, .view)
            for name in names {
                countKept(CompactionReport.KeptForView(name, events: 1, bytes: bytes))
            }
        case .removed:
            row.removed += 1
            row.freedBytes += bytes
            removed += 1
            freedBytes += bytes
        }
        types[event.type] = row
    }

    private mutating func countKept(_ kept: CompactionReport.KeptForView) {
        views[kept.view, default: CompactionReport.KeptForView(view: kept.view)].events +=
            kept.events
        views[kept.view]?.bytes += kept.bytes
    }

    /// Counts all removed events as kept: their segment was not rewritten.
    mutating func keepAll(_ reason: KeptReason) {
        for type in types.keys {
            guard var row = types[type], row.removed > 0 else { continue }
            row.keep(row.removed, row.freedBytes, reason)
            (row.removed, row.freedBytes) = (0, 0)
            types[type] = row
        }
        removed = 0
        freedBytes = 0
    }

    mutating func merge(_ other: CompactionTally) {
        for (type, row) in other.types {
            guard var sum = types[type] else {
                types[type] = row
                continue
            }
            sum.events += row.events
            sum.removed += row.removed
            sum.freedBytes += row.freedBytes
            sum.kept.merge(row.kept, uniquingKeysWith: +)
            sum.keptBytes.merge(row.keptBytes, uniquingKeysWith: +)
            types[type] = sum
        }
        for kept in other.views.values { countKept(kept) }
        lineBytes += other.lineBytes
        freedBytes += other.freedBytes
        removed += other.removed
    }
}

extension CompactionReport.TypeReport {
    fileprivate mutating func keep(_ events: Int, _ bytes: Int, _ reason: KeptReason) {
        kept[reason, default: 0] += events
        keptBytes[reason, default: 0] += bytes
    }
}

extension CompactionReport.KeptForView {
    fileprivate init(_ view: String, events: Int, bytes: Int) {
        self.init(view: view)
        self.events = events
        self.bytes = bytes
    }
}

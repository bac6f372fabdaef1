// What a compaction freed, what it kept, and why. Spec/format/compaction.md, CMP-28.

import LogFormat

/// What a compaction, or a look at what it would do, came to.
public struct CompactionReport: Hashable, Sendable {
    /// One event type.
    public struct TypeReport: Hashable, Sendable {
        /// The type.
        public var type: String
        /// Events of the type.
        public var events = 0
        /// How many went.
        public var removed = 0
        /// Bytes of their lines, newlines included, before compression.
        public var freedBytes = 0
        /// How many were kept, by reason.
        public var kept: [KeptReason: Int] = [:]

        /// Creates an empty report.
        public init(type: String) { self.type = type }
    }

    /// What stayed for one view's sake.
    public struct KeptForView: Hashable, Sendable {
        /// The view.
        public var view: String
        /// Events that would have gone but for this view and others like it.
        public var events = 0
        /// Bytes of their lines, newlines included, before compression.
        public var bytes = 0

        /// Creates an empty entry.
        public init(view: String) { self.view = view }
    }

    /// The types, by name.
    public var types: [TypeReport] = []
    /// Bytes of all segments on disk before.
    public var bytesBefore = 0
    /// Bytes of all segments on disk afterwards; of a look, an estimate.
    public var bytesAfter = 0
    /// Segments that were looked at.
    public var segments = 0
    /// Segments that were written anew; of a look, those that would be.
    public var segmentsRewritten = 0
    /// States before this position cannot be rebuilt any more.
    public var compactedThrough = Position.zero
    /// Removed ids that are remembered now.
    public var idsRemembered = 0
    /// Only events up to this position could go: every stored state of every view has folded them.
    public var limit = Position.zero
    /// Views that kept the limit back: no stored state of theirs reaches further.
    public var heldBackBy: [String] = []
    /// Views that need events which no other view needs any more, by name. They do not say which
    /// events they no longer need (`Projection.allowsCompaction`), so what stays for their sake
    /// grows with the log.
    public var keptForViews: [KeptForView] = []
    /// Whether nothing was changed, as asked.
    public var isDryRun = false

    /// Creates an empty report.
    public init() {}

    /// Events that went, of all types.
    public var removed: Int { types.reduce(0) { $0 + $1.removed } }
    /// Bytes of their lines before compression.
    public var freedBytes: Int { types.reduce(0) { $0 + $1.freedBytes } }
    /// Events that were kept, by reason.
    public var kept: [KeptReason: Int] {
        types.reduce(into: [:]) { $0.merge($1.kept, uniquingKeysWith: +) }
    }
}

/// What is counted while events are judged.
struct CompactionTally {
    private(set) var types: [String: CompactionReport.TypeReport] = [:]
    private(set) var lineBytes = 0
    private(set) var freedBytes = 0
    private(set) var removed = 0
    private var views: [String: CompactionReport.KeptForView] = [:]

    var keptForViews: [CompactionReport.KeptForView] {
        views.values.sorted { EntityID($0.view) < EntityID($1.view) }
    }

    mutating func add(_ event: Event, _ verdict: CompactionVerdict) {
        let bytes = event.lineBytes + 1
        lineBytes += bytes
        var row = types[event.type] ?? CompactionReport.TypeReport(type: event.type)
        row.events += 1
        switch verdict {
        case .stays(let reason): row.kept[reason, default: 0] += 1
        case .staysForViews(let names):
            row.kept[.view, default: 0] += 1
            for name in names { add(CompactionReport.KeptForView(name, events: 1, bytes: bytes)) }
        case .goes:
            row.removed += 1
            row.freedBytes += bytes
            removed += 1
            freedBytes += bytes
        }
        types[event.type] = row
    }

    private mutating func add(_ kept: CompactionReport.KeptForView) {
        views[kept.view, default: CompactionReport.KeptForView(view: kept.view)].events +=
            kept.events
        views[kept.view]?.bytes += kept.bytes
    }

    /// What would have gone stays after all.
    mutating func keepAll(_ reason: KeptReason) {
        for type in types.keys {
            guard let count = types[type]?.removed, count > 0 else { continue }
            types[type]?.removed = 0
            types[type]?.freedBytes = 0
            types[type]?.kept[reason, default: 0] += count
        }
        removed = 0
        freedBytes = 0
    }

    mutating func add(_ other: CompactionTally) {
        for (type, row) in other.types {
            guard var sum = types[type] else {
                types[type] = row
                continue
            }
            sum.events += row.events
            sum.removed += row.removed
            sum.freedBytes += row.freedBytes
            sum.kept.merge(row.kept, uniquingKeysWith: +)
            types[type] = sum
        }
        for kept in other.views.values { add(kept) }
        lineBytes += other.lineBytes
        freedBytes += other.freedBytes
        removed += other.removed
    }
}

extension CompactionReport.KeptForView {
    fileprivate init(_ view: String, events: Int, bytes: Int) {
        self.init(view: view)
        self.events = events
        self.bytes = bytes
    }
}

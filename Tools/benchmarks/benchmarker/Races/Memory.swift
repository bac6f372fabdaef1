// The peak memory of streaming work, each in a process of its own, and the memory of an opened store's
// views.

import Foundation

/// The memory row.
struct Memory {
    let source: Input.Source
    let folder: URL
    /// The approximate bytes of the log's lines.
    let lineBytes: Int

    private static let limitMiB = 40.0
    private static let views = "views"
    private static let open = "open"
    private static let compact = "compact"

    func measure() throws -> RaceResult {
        let sample = try Input(source).drafts(0..<10_000)
        let sampleBytes = Input.lines(sample).reduce(0) { $0 + $1.count }
        let events = lineBytes / (sampleBytes / sample.count)
        func measured(
            _ kind: LogWork.Kind, _ log: String = "memory"
        ) throws -> Measured<LogWork.Figures> {
            reportProgress("memory: \(kind.rawValue)")
            return try LogWork(
                kind: kind, log: folder.appending(path: log).path, events: events, source: source
            ).inOwnProcess()
        }
        _ = try measured(.append)
        // The memory of an opened store, less that of a store without events.
        let views =
            try measured(.idle).figures.residentMiB
            - measured(.idle, "memory-empty").figures.residentMiB
        // An app opens its store once; `LogWork.Kind.open` does it many times.
        let kinds: [(name: String, kind: LogWork.Kind)] = [
            ("scan", .scan), ("verify", .verify), (Self.open, .idle), (Self.compact, .compact),
        ]
        let entries = try kinds.map {
            RaceResult.Entry(name: $0.name, costs: [try measured($0.kind).peakMiB])
        }
        return RaceResult(
            name:
                "peak memory, \(Markdown.count(events)) events, \(lineBytes / 1_000_000) MB of lines",
            unit: "MiB", entries: entries + [.init(name: Self.views, costs: [max(0, views)])],
            budgets: kinds.map { kind in
                .within(
                    Self.limitMiB, entry: kind.name,
                    and: [Self.open, Self.compact].contains(kind.name) ? Self.views : nil)
            })
    }
}

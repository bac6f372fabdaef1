// Measures whether the cost of a work stays constant as the log grows. Each work runs in a process of its
// own, on logs with the same entities and increasing numbers of events. Spec/benchmarks.

import Foundation

/// Costs and memory over logs of several sizes.
struct Growth {
    /// The costs of a work at one size.
    struct Point: Encodable {
        var events: Int
        /// The cost of one event, opening or lookup.
        var microseconds: Double
        var peakMiB: Double
    }

    /// The costs of a work at all sizes.
    struct Curve: Encodable {
        /// The name of the work.
        var work: String
        /// The operation that one cost is for.
        var unit: String
        /// The points by size, ascending.
        var points: [Point]

        /// The cost at the last size divided by the cost at the first.
        var growth: Double { ratio(of: points.last, to: points.first, \.microseconds) }
        /// The cost at the last size divided by the cost at the one before.
        var lastStep: Double { ratio(of: points.last, to: points.dropLast().last, \.microseconds) }
        /// The peak memory at the last size divided by that at the first.
        var memoryGrowth: Double { ratio(of: points.last, to: points.first, \.peakMiB) }

        /// The classification of the growth, with tolerances for a noisy machine. A cost levels off if only
        /// small logs are cheaper: they have no sealed segment, and they fit into a cache.
        var verdict: String {
            growth <= 1.5 ? "flat" : lastStep <= 1.25 ? "levels off" : "grows"
        }

        private func ratio(
            of point: Point?, to other: Point?, _ value: KeyPath<Point, Double>
        ) -> Double {
            guard let point, let other else { return .nan }
            return point[keyPath: value] / other[keyPath: value]
        }
    }

    /// The numbers of events, ascending.
    let sizes: [Int]
    let source: Input.Source
    let folder: URL

    /// The most events that are shipped: the size of a batch does not depend on more.
    private static let shippedMax = 200_000

    /// The works, in the order in which they run: the last ones change the log.
    private static let works: [(kind: LogWork.Kind, name: String, unit: String)] = [
        (.append, "append, batches of 1,000", "event"),
        (.open, "open with a checkpoint", "opening"),
        (.known, "look up an id that is there", "lookup"),
        (.unknown, "look up an id that is not", "lookup"),
        (.scan, "scan", "event"),
        (.verify, "verify", "event"),
        (.rebuild, "rebuild all views", "event"),
        (.companion, "open a companion, append, read an entry", "companion"),
        (.compact, "compact", "event"),
        (.ship, "ship to a null server", "event"),
    ]

    /// Measures all works at all sizes.
    func measure() throws -> [Curve] {
        var curves = Self.works.map { Curve(work: $0.name, unit: $0.unit, points: []) }
        for events in sizes {
            let folder = try Folder(in: folder)
            defer { folder.remove() }
            let log = folder.url.appending(path: "log").path
            for (index, work) in Self.works.enumerated() where work.kind != .ship {
                curves[index].points.append(try point(work.kind, log, events))
                reportProgress("\(work.name), \(events) events")
            }
        }
        guard let shipping = Self.works.firstIndex(where: { $0.kind == .ship }) else {
            return curves
        }
        for events in Set(sizes.map { min($0, Self.shippedMax) }).sorted() {
            let folder = try Folder(in: folder)
            defer { folder.remove() }
            let log = folder.url.appending(path: "log").path
            _ = try point(.fill, log, events)
            curves[shipping].points.append(try point(.ship, log, events))
            reportProgress("\(Self.works[shipping].name), \(events) events")
        }
        return curves
    }

    private func point(_ kind: LogWork.Kind, _ log: String, _ events: Int) throws -> Point {
        let measured = try LogWork(kind: kind, log: log, events: events, source: source)
            .inOwnProcess()
        let figures = measured.figures
        return Point(
            events: events, microseconds: figures.seconds * 1e6 / Double(figures.count),
            peakMiB: measured.peakMiB)
    }
}

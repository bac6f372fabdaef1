// Does the cost of a piece of work stay the same while the log grows? Each in a process of its own,
// over logs of the same entities and more and more events. GrowthReport prints it; Spec/benchmarks.

import Foundation

/// Costs and memory over logs of several sizes.
struct Growth {
    /// A work at one size.
    struct Point: Encodable {
        var events: Int
        /// Of one event, opening or lookup.
        var microseconds: Double
        var peakMiB: Double
    }

    /// A work at all sizes.
    struct Curve: Encodable {
        /// What the work is.
        var work: String
        /// What one cost is for.
        var unit: String
        /// By size, ascending.
        var points: [Point]

        /// The cost at the last size by that at the first.
        var growth: Double { ratio(of: points.last, to: points.first, \.microseconds) }
        /// The cost at the last size by that at the one before.
        var lastStep: Double { ratio(of: points.last, to: points.dropLast().last, \.microseconds) }
        /// As `growth`, of the memory.
        var memoryGrowth: Double { ratio(of: points.last, to: points.first, \.peakMiB) }

        /// Whether the cost stays the same, as far as a noisy machine can tell. It levels off where
        /// small logs are spared something: they have no sealed segment, they fit into a cache.
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

    /// Ascending.
    let sizes: [Int]
    let source: Input.Source
    let folder: URL

    /// More are not shipped: what is sent at a time does not depend on it.
    private static let shippedMax = 200_000

    /// The order matters: the last ones change the log.
    private static let works: [(kind: LogWork.Kind, name: String, unit: String)] = [
        (.append, "append, batches of 1,000", "event"),
        (.open, "open with a checkpoint", "opening"),
        (.known, "look up an id that is there", "lookup"),
        (.unknown, "look up an id that is not", "lookup"),
        (.scan, "scan", "event"),
        (.verify, "verify", "event"),
        (.rebuild, "rebuild all views", "event"),
        (.compact, "compact", "event"),
        (.ship, "ship to a null server", "event"),
    ]

    /// Measures everything.
    func measure() throws -> [Curve] {
        var curves = Self.works.map { Curve(work: $0.name, unit: $0.unit, points: []) }
        for events in sizes {
            let place = try Folder(in: folder)
            defer { place.remove() }
            let log = place.url.appending(path: "log").path
            for (index, work) in Self.works.enumerated() where work.kind != .ship {
                curves[index].points.append(try point(work.kind, log, events))
                tell("\(work.name), \(events) events")
            }
        }
        guard let shipping = Self.works.firstIndex(where: { $0.kind == .ship }) else {
            return curves
        }
        for events in Set(sizes.map { min($0, Self.shippedMax) }).sorted() {
            let place = try Folder(in: folder)
            defer { place.remove() }
            let log = place.url.appending(path: "log").path
            _ = try point(.fill, log, events)
            curves[shipping].points.append(try point(.ship, log, events))
            tell("\(Self.works[shipping].name), \(events) events")
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

// The growth report: costs by the size of the log, as a table and as a plot with a line for each work.
// `Tools/benchmark growth` writes it to Spec/benchmarks.

import Foundation

/// All curves of a run.
struct GrowthReport: Encodable {
    let origin: Origin
    let curves: [Growth.Curve]

    private var sizes: [Int] { Set(curves.flatMap { $0.points.map(\.events) }).sorted() }

    /// Two tables: costs and peak memory, by size.
    var markdown: String {
        let events = sizes.map { "\(Markdown.count($0)) events" }
        func cells(_ curve: Growth.Curve, _ value: (Growth.Point) -> Double) -> [String] {
            sizes.map { size in
                Markdown.number(curve.points.first { $0.events == size }.map(value))
            }
        }
        let costs = curves.map { curve in
            [curve.work, curve.unit] + cells(curve, \.microseconds)
                + [Markdown.number(curve.growth), Markdown.number(curve.lastStep), curve.verdict]
        }
        let memory = curves.map { curve in
            [curve.work] + cells(curve, \.peakMiB) + [Markdown.number(curve.memoryGrowth)]
        }
        return origin.markdown
            + "Cost in µs of one event, opening or lookup:\n\n"
            + Markdown.table(
                ["work", "one"] + events + ["last by first", "last by the one before", ""], costs)
            + "\nPeak memory of the process in MiB:\n\n"
            + Markdown.table(["work"] + events + ["last by first"], memory)
    }

    // MARK: Plot

    private static let colours = [
        "#4a90d9", "#d0654a", "#5aa469", "#8e6bbf", "#c9a227", "#3aa6a6", "#8c564b", "#e377c2",
        "#555555",
    ]
    private static let plot = (left: 70.0, top: 20.0, width: 480.0, height: 400.0)

    /// The plot. Both axes are logarithmic; a horizontal line is a cost that does not grow.
    var svg: String {
        let costs = curves.flatMap { $0.points.map(\.microseconds) }.filter { $0 > 0 }
        guard let minimum = costs.min(), let maximum = costs.max(), let first = sizes.first,
            let last = sizes.last
        else { return "" }
        let plot = Self.plot
        let (xScale, yScale) = (
            LogScale(first, last), LogScale(decadesAround: minimum, maximum)
        )
        func x(_ events: Int) -> Double {
            plot.left + xScale.fraction(of: Double(events)) * plot.width
        }
        func y(_ cost: Double) -> Double {
            plot.top + (1 - yScale.fraction(of: cost)) * plot.height
        }
        let (right, bottom) = (plot.left + plot.width, plot.top + plot.height)
        var text = """
            <svg xmlns="http://www.w3.org/2000/svg" width="800" height="\(Int(bottom + 50))" \
            font-family="sans-serif" font-size="12">
            <rect width="100%" height="100%" fill="white"/>
            <text x="\(plot.left)" y="14">µs for one event, opening or lookup</text>
            <text x="\((plot.left + right) / 2)" y="\(bottom + 38)" text-anchor="middle">\
            events in the log</text>

            """
        for decade in yScale.decades {
            let lineY = y(decade)
            text += """
                <line x1="\(plot.left)" y1="\(lineY)" x2="\(right)" y2="\(lineY)" stroke="#ddd"/>
                <text x="\(plot.left - 6)" y="\(lineY + 4)" text-anchor="end">\
                \(Markdown.number(decade))</text>

                """
        }
        for size in sizes {
            text += """
                <line x1="\(x(size))" y1="\(plot.top)" x2="\(x(size))" y2="\(bottom)" stroke="#ddd"/>
                <text x="\(x(size))" y="\(bottom + 18)" text-anchor="middle">\
                \(Markdown.count(size))</text>

                """
        }
        for (index, curve) in curves.enumerated() {
            let colour = Self.colours[index % Self.colours.count]
            let points = curve.points.map { "\(x($0.events)),\(y($0.microseconds))" }
            text += """
                <polyline points="\(points.joined(separator: " "))" fill="none" \
                stroke="\(colour)" stroke-width="2"/>
                <text x="\(right + 14)" y="\(plot.top + 14 + Double(index) * 20)" \
                fill="\(colour)">\(Markdown.escaped(curve.work))</text>

                """
        }
        return text + "</svg>\n"
    }
}

/// A logarithmic axis.
private struct LogScale {
    private let low: Double
    private let high: Double

    init(_ minimum: Int, _ maximum: Int) {
        (low, high) = (log10(Double(minimum)), log10(Double(max(maximum, minimum + 1))))
    }

    /// Creates an axis from one power of ten to another.
    init(decadesAround minimum: Double, _ maximum: Double) {
        low = log10(minimum).rounded(.down)
        high = max(log10(maximum).rounded(.up), low + 1)
    }

    /// The position of a value on the axis, from 0 to 1.
    func fraction(of value: Double) -> Double { (log10(value) - low) / (high - low) }

    /// The powers of ten.
    var decades: [Double] { stride(from: low, through: high, by: 1).map { pow(10, $0) } }
}

// The report of the races: tables, JSON and a plot. `Tools/benchmark` writes it to Spec/benchmarks.

/// All results of a run.
struct RaceReport {
    let origin: Origin
    let results: [RaceResult]

    private static func text(of budget: Budget, in result: RaceResult) -> String {
        switch budget {
        case .atMost(let limit, let peer): "at most \(Markdown.number(limit)) × \(peer)"
        case .processorAtMost(let limit, let peer):
            "processor time at most \(Markdown.number(limit)) × \(peer)"
        case .atLeast(let factor, let peer):
            "at least \(Markdown.number(factor)) × as fast as \(peer)"
        case .within(let limit, let entry, let other):
            "\(entry): at most \(Markdown.number(limit)) \(result.unit)"
                + (other.map { " more than \($0)" } ?? "")
        }
    }

    /// Two tables in Markdown: costs, and ratios with their budgets.
    var markdown: String {
        let rows = results.flatMap { result in
            result.entries.enumerated().map { index, entry in
                [
                    index == 0 ? result.title : "", index == 0 ? result.unit : "", entry.name,
                    Markdown.number(entry.median),
                    result.ratio(of: entry).map(Markdown.number) ?? "",
                    entry.costs.count > 1 ? Markdown.percent(entry.spread) : "",
                    entry.processor.isEmpty ? "" : Markdown.number(entry.processor.median),
                    result.processorRatio(of: entry).map(Markdown.number) ?? "",
                ]
            }
        }
        return origin.markdown + missing
            + Markdown.table(
                [
                    "work", "unit", "program", "median", "× \(RaceResult.ours)", "spread",
                    "processor time", "× \(RaceResult.ours)",
                ], rows)
            + "\n" + budgets
    }

    private var missing: String {
        OutsidePeer.all.isEmpty
            ? "RocksDB and LMDB took no part: their headers are not installed here.\n\n" : ""
    }

    /// The table of budgets and measured values, with both results of a race in one row.
    private var budgets: String {
        Markdown.table(
            ["work", "budget", "measured", "one core busy", "met"],
            results.filter { !$0.hasBusyCore }.flatMap { result in
                let busy = results.first { $0.hasBusyCore && $0.name == result.name }
                let verdicts = [result.verdicts] + (busy.map { [$0.verdicts] } ?? [])
                return result.verdicts.indices.map { index in
                    let pair = verdicts.map { $0[index] }
                    let verdictTexts = pair.map { $0.isMet ? "yes" : "no" }
                    return [
                        result.name, Self.text(of: pair[0].budget, in: result),
                        Markdown.number(pair[0].measured),
                        pair.count > 1 ? Markdown.number(pair[1].measured) : "",
                        Set(verdictTexts).count == 1
                            ? verdictTexts[0] : verdictTexts.joined(separator: "; "),
                    ]
                }
            })
    }

    /// The part for the README.
    var summary: String {
        """

        \(origin.markdown)\
        ![part of each budget that was taken](Spec/benchmarks/results.svg)

        \(budgets)

        """
    }

    // MARK: JSON

    private struct Row: Encodable {
        struct Cost: Encodable {
            var name: String
            var costs: [Double]
            var processor: [Double]
        }
        struct Ratio: Encodable {
            var budget: String
            var measured: Double
            var isMet: Bool
        }
        var work: String
        var unit: String
        var costs: [Cost]
        var ratios: [Ratio]
    }

    private struct All: Encodable {
        var origin: Origin
        var rows: [Row]
    }

    /// All figures.
    var figures: some Encodable {
        All(
            origin: origin,
            rows: results.map { result in
                Row(
                    work: result.title, unit: result.unit,
                    costs: result.entries.map {
                        .init(name: $0.name, costs: $0.costs, processor: $0.processor)
                    },
                    ratios: result.verdicts.map {
                        .init(
                            budget: Self.text(of: $0.budget, in: result), measured: $0.measured,
                            isMet: $0.isMet)
                    })
            })
    }

    // MARK: Plot

    /// The plot: a bar for each budget, as long as the used part. A bar left of the line meets its budget.
    var svg: String {
        let rows = results.flatMap { result in
            result.verdicts.map { ("\(result.title): \(Self.text(of: $0.budget, in: result))", $0) }
        }
        let (left, unit, height) = (560.0, 160.0, 24.0)
        let end = Double(rows.count) * height + 30
        var text = """
            <svg xmlns="http://www.w3.org/2000/svg" width="\(Int(left + 3 * unit))" \
            height="\(Int(end + 30))" font-family="sans-serif" font-size="12">
            <rect width="100%" height="100%" fill="white"/>
            <text x="8" y="18">part of the budget that was taken (1: just met)</text>

            """
        for (index, (label, verdict)) in rows.enumerated() {
            let y = 30 + Double(index) * height
            let width = max(0, min(verdict.share, 2.5)) * unit
            text += """
                <text x="\(left - 8)" y="\(y + 15)" text-anchor="end">\
                \(Markdown.escaped(label))</text>
                <rect x="\(left)" y="\(y + 3)" width="\(width)" height="16" \
                fill="\(verdict.isMet ? "#4a90d9" : "#d0654a")"/>
                <text x="\(left + 3 * unit - 8)" y="\(y + 15)" text-anchor="end">\
                \(Markdown.number(verdict.share))</text>

                """
        }
        text += """
            <line x1="\(left + unit)" y1="26" x2="\(left + unit)" y2="\(end)" stroke="black"/>
            </svg>

            """
        return text
    }
}

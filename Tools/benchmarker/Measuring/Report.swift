// The table of all rows: for people, as JSON, and as a plot. Written to Spec/benchmarks by
// Tools/benchmark.

import Foundation

/// All results of a run.
struct Report {
    let machine: String
    let input: String
    let results: [RaceResult]

    private static func number(_ value: Double) -> String {
        guard value.isFinite else { return "–" }
        let digits = max(0, 2 - Int(log10(max(abs(value), 1e-9)).rounded(.down)))
        return String(format: "%.\(min(digits, 4))f", value)
    }

    private static func words(_ budget: Budget) -> String {
        switch budget {
        case .atMost(let most, let peer): "at most \(number(most)) × \(peer)"
        case .atLeast(let least, let peer): "at least \(number(least)) × as fast as \(peer)"
        }
    }

    /// Two tables in Markdown: costs, and ratios beside the budgets.
    var markdown: String {
        var text = "\(machine). Input: \(input).\n\n"
        text += "| work | unit | who | median | spread |\n|---|---|---|---|---|\n"
        for result in results {
            for (index, entry) in result.entries.enumerated() {
                text += "| \(index == 0 ? result.name : "") | \(index == 0 ? result.unit : "") "
                text += "| \(entry.name) | \(Self.number(entry.median)) "
                text += "| \(String(format: "%.0f", entry.spread * 100)) % |\n"
            }
        }
        text += "\n| work | budget | measured | met |\n|---|---|---|---|\n"
        for result in results {
            for verdict in result.verdicts {
                text += "| \(result.name) | \(Self.words(verdict.budget)) "
                text += "| \(Self.number(verdict.ratio)) | \(verdict.isMet ? "yes" : "no") |\n"
            }
        }
        return text
    }

    /// All figures.
    func json() throws -> Data {
        struct Row: Encodable {
            struct Cost: Encodable {
                var name: String
                var costs: [Double]
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
            var note: String?
        }
        struct All: Encodable {
            var machine: String
            var input: String
            var rows: [Row]
        }
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.prettyPrinted, .sortedKeys]
        return try encoder.encode(
            All(
                machine: machine, input: input,
                rows: results.map { result in
                    Row(
                        work: result.name, unit: result.unit,
                        costs: result.entries.map { .init(name: $0.name, costs: $0.costs) },
                        ratios: result.verdicts.map {
                            .init(
                                budget: Self.words($0.budget), measured: $0.ratio, isMet: $0.isMet)
                        }, note: result.note)
                }))
    }

    /// A bar for each budget: how much of what is allowed was taken. Left of the line is met.
    var svg: String {
        let rows = results.flatMap { result in
            result.verdicts.map { verdict -> (label: String, share: Double, isMet: Bool) in
                switch verdict.budget {
                case .atMost(let most, let peer):
                    ("\(result.name), beside \(peer)", verdict.ratio / most, verdict.isMet)
                case .atLeast(let least, let peer):
                    ("\(result.name), beside \(peer)", least / verdict.ratio, verdict.isMet)
                }
            }
        }
        let (left, unit, height) = (430.0, 200.0, 24.0)
        let end = Double(rows.count) * height + 30
        var text = """
            <svg xmlns="http://www.w3.org/2000/svg" width="\(Int(left + 3 * unit))" \
            height="\(Int(end + 30))" font-family="sans-serif" font-size="12">
            <rect width="100%" height="100%" fill="white"/>
            <text x="8" y="18">part of the budget that was taken (1: just met)</text>

            """
        for (index, row) in rows.enumerated() {
            let y = 30 + Double(index) * height
            let width = min(row.share, 2.5) * unit
            text += """
                <text x="\(left - 8)" y="\(y + 15)" text-anchor="end">\
                \(Self.escaped(row.label))</text>
                <rect x="\(left)" y="\(y + 3)" width="\(width)" height="16" \
                fill="\(row.isMet ? "#4a90d9" : "#d0654a")"/>
                <text x="\(left + width + 6)" y="\(y + 15)">\(Self.number(row.share))</text>

                """
        }
        text += """
            <line x1="\(left + unit)" y1="26" x2="\(left + unit)" y2="\(end)" stroke="black"/>
            </svg>

            """
        return text
    }

    private static func escaped(_ text: String) -> String {
        text.replacingOccurrences(of: "&", with: "&amp;")
            .replacingOccurrences(of: "<", with: "&lt;")
    }

    /// What the machine is.
    static func machineDescription() -> String {
        let info = (try? String(contentsOf: URL(filePath: "/proc/cpuinfo"), encoding: .utf8)) ?? ""
        let model = info.split(separator: "\n").first { $0.hasPrefix("model name") }?
            .split(separator: ":").last.map { $0.trimmingCharacters(in: .whitespaces) }
        let process = ProcessInfo.processInfo
        let memory = Double(process.physicalMemory) / 1_073_741_824
        return "\(model ?? "unknown processor"), \(process.activeProcessorCount) cores, "
            + String(format: "%.0f GiB, ", memory) + process.operatingSystemVersionString
    }
}

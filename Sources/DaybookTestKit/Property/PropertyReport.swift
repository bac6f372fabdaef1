// The number of runs of a property, and the sums of their counts. A required label that was never counted is
// a failure of the check, not of the property.

/// The result of a property's runs.
public struct PropertyReport: Sendable, Equatable {
    /// The number of runs that passed.
    public private(set) var runs = 0
    /// The counts of `Choices.count(_:by:)` in these runs, by label.
    public private(set) var counts: [String: Int] = [:]

    mutating func recordRun(_ choices: Choices) {
        runs += 1
        counts.merge(choices.counts, uniquingKeysWith: +)
    }

    func requireCoverage(of labels: [String], _ name: String) throws {
        let missing = labels.filter { counts[$0] == nil }
        if !missing.isEmpty { throw CoverageFailure(name: name, missing: missing, report: self) }
    }
}

/// The error of a check whose runs all passed, but never tried a required case.
public struct CoverageFailure: Error, CustomStringConvertible {
    /// The property.
    public let name: String
    /// The labels that were never counted.
    public let missing: [String]
    /// The runs and the labels that were counted.
    public let report: PropertyReport

    /// The property, the missing labels and the counted ones.
    public var description: String {
        let counted = report.counts.sorted { $0.key < $1.key }.map { "\($0.key): \($0.value)" }
        return """
            \(name): never happened in \(report.runs) runs: \(missing.joined(separator: ", "))
              counted: \(counted.isEmpty ? "nothing" : counted.joined(separator: ", "))
            """
    }
}

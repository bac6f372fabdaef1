// What was tried: how often, and what happened meanwhile. Filled by Property from the counts of each
// run's choices; a rare case that never came up is a failure of the check, not of the property.

/// What a property's runs came to.
public struct PropertyReport: Sendable, Equatable {
    /// Runs that went well.
    public private(set) var runs = 0
    /// What `Choices.count(_:by:)` counted, over all of them.
    public private(set) var counts: [String: Int] = [:]

    mutating func add(_ choices: Choices) {
        runs += 1
        counts.merge(choices.counts, uniquingKeysWith: +)
    }

    func requireCoverage(of labels: [String], _ name: String) throws {
        let missing = labels.filter { counts[$0] == nil }
        if !missing.isEmpty { throw CoverageFailure(name: name, missing: missing, report: self) }
    }
}

/// All runs went well, but what they were to try never happened.
public struct CoverageFailure: Error, CustomStringConvertible {
    /// The property.
    public let name: String
    /// The labels that were never counted.
    public let missing: [String]
    /// What was tried instead.
    public let report: PropertyReport

    /// All of it, in several lines.
    public var description: String {
        let counted = report.counts.sorted { $0.key < $1.key }.map { "\($0.key): \($0.value)" }
        return """
            \(name): never happened in \(report.runs) runs: \(missing.joined(separator: ", "))
              counted: \(counted.isEmpty ? "nothing" : counted.joined(separator: ", "))
            """
    }
}

// The trait with which a test cites the requirement ids of Spec that it verifies. Tools/checks/requirements
// compares the two.

import Testing

/// The requirement ids that a test or a suite verifies.
public struct Requirements: TestTrait, SuiteTrait {
    /// The ids as in the specification: `SEG-4`.
    public let ids: [String]

    /// True: a suite cites for all its tests.
    public var isRecursive: Bool { true }

    /// The ids, shown when the test fails.
    public var comments: [Comment] { ["verifies \(ids.joined(separator: ", "))"] }
}

extension Trait where Self == Requirements {
    /// Cites requirements of the specification.
    public static func verifies(_ ids: String...) -> Self { Requirements(ids: ids) }
}

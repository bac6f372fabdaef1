// The trait by which a test cites what it verifies: the ids that the pages of Spec define. Tools/checks/requirements
// compares the two.

import Testing

/// The requirement ids that a test or a suite verifies.
public struct Requirements: TestTrait, SuiteTrait {
    /// Ids as the specification writes them: `SEG-4`.
    public let ids: [String]

    /// A suite cites for all its tests.
    public var isRecursive: Bool { true }

    /// Shown where the test fails.
    public var comments: [Comment] { ["verifies \(ids.joined(separator: ", "))"] }
}

extension Trait where Self == Requirements {
    /// Cites requirements of the specification.
    public static func verifies(_ ids: String...) -> Self { Requirements(ids: ids) }
}

// The doors through which bytes from outside come in, each as one function from bytes to "nothing to
// complain about". libFuzzer calls them with inputs that it makes up; a test calls them with the
// inputs that once broke them. Spec/testing/fuzzing.md.

/// A property that did not hold for an input.
package struct BrokenProperty: Error, CustomStringConvertible {
    package let description: String
}

/// Something that reads bytes which somebody else may have written.
///
/// The first byte of every input says how the rest is to be taken; what its bits mean stands at each
/// target. Whatever the bytes are, `check` must neither crash nor hang nor allocate more than the
/// limits of the format and what it was given allow.
package enum FuzzTarget: String, CaseIterable, Sendable {
    /// LZ4 blocks through the codec in Swift, and the same through liblz4.
    case block
    /// One segment through the scanner.
    case segment
    /// A folder with up to two files: verified, read, opened, appended to, repaired.
    case log
    /// A line: prefix, event, JSON.
    case line
    /// A footer and the id index in it.
    case footer
    /// A list of removed ids.
    case removed
    /// A checkpoint.
    case checkpoint
    /// The state of a view in a checkpoint.
    case state
    /// What a server answers.
    case verdict
    /// What a client posts.
    case batch

    /// Bytes of an input at most: enough for everything that can go wrong, little enough to be quick.
    package var inputBytesMax: Int {
        switch self {
        case .segment, .log: 4_500
        case .block, .line, .footer, .removed, .state: 1_500
        case .checkpoint, .verdict, .batch: 2_500
        }
    }

    /// Looks at one input.
    ///
    /// - Throws: `BrokenProperty` where something that must always hold does not.
    package func check(_ input: [UInt8]) throws {
        guard let mode = input.first else { return }
        let bytes = Array(input.dropFirst())
        switch self {
        case .block: try BlockCheck(mode: mode).check(bytes)
        case .segment: try SegmentCheck(mode: mode).check(bytes)
        case .log: try LogCheck(mode: mode).check(bytes)
        case .line: try LineCheck().check(bytes)
        case .footer: try FooterCheck(mode: mode).check(bytes)
        case .removed: try RemovedIDsCheck(mode: mode).check(bytes)
        case .checkpoint: try CheckpointCheck(mode: mode).check(bytes)
        case .state: try StateCheck(mode: mode).check(bytes)
        case .verdict: try VerdictCheck(mode: mode).check(bytes)
        case .batch: try BatchCheck().check(bytes)
        }
    }
}

/// Says so if something does not hold that must.
func expect(_ holds: @autoclosure () -> Bool, _ property: @autoclosure () -> String) throws {
    guard holds() else { throw BrokenProperty(description: property()) }
}

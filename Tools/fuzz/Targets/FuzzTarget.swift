// The parsers of untrusted bytes, each as one function that checks an input. libFuzzer calls them with
// generated inputs; a test calls them with the inputs that once failed. Spec/testing/fuzzing.md.

/// A property that does not hold for an input.
package struct BrokenProperty: Error, CustomStringConvertible {
    package let description: String
}

/// A parser of untrusted bytes.
///
/// The first byte of every input is the mode; each target documents its bits. For all inputs, `check`
/// must neither crash nor hang, nor allocate more memory than the size of the input and the limits of
/// the format permit.
package enum FuzzTarget: String, CaseIterable, Sendable {
    /// LZ4 blocks through the codec in Swift, and the same through liblz4.
    case block
    /// One segment through the scanner.
    case segment
    /// A folder with up to two files: it is verified, read, opened, appended to, repaired.
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
    /// A server's answer.
    case verdict
    /// A client's batch.
    case batch

    /// The most bytes of an input: enough to reach every branch, few enough to be fast.
    package var inputBytesMax: Int {
        switch self {
        case .segment, .log: 4_500
        case .block, .line, .footer, .removed, .state: 1_500
        case .checkpoint, .verdict, .batch: 2_500
        }
    }

    /// Checks one input.
    ///
    /// - Throws: `BrokenProperty` if a property does not hold.
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

/// Throws `BrokenProperty` if a property does not hold.
func expect(_ holds: @autoclosure () -> Bool, _ property: @autoclosure () -> String) throws {
    guard holds() else { throw BrokenProperty(description: property()) }
}

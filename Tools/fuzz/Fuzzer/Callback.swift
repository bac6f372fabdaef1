// The callback of libFuzzer. A property that does not hold ends the process, as a crash does, so that
// libFuzzer saves the input.

import Foundation
import FuzzTargets

/// The target named in the environment.
private let target: FuzzTarget = {
    let name = ProcessInfo.processInfo.environment["DAYBOOK_FUZZ_TARGET"] ?? ""
    guard let target = FuzzTarget(rawValue: name) else {
        fatalError("DAYBOOK_FUZZ_TARGET names no target: \(name)")
    }
    return target
}()

/// Checks one input with the target.
func fuzzed(_ input: UnsafeRawBufferPointer) {
    do {
        try target.check(Array(input))
    } catch {
        fatalError("\(target.rawValue): \(error)")
    }
}

// What libFuzzer calls with every input. A property that does not hold ends the process, as a crash
// does: libFuzzer then keeps the input.

import Foundation
import FuzzTargets

/// The target that was asked for.
private let target: FuzzTarget = {
    let name = ProcessInfo.processInfo.environment["DAYBOOK_FUZZ_TARGET"] ?? ""
    guard let target = FuzzTarget(rawValue: name) else {
        fatalError("DAYBOOK_FUZZ_TARGET names no target: \(name)")
    }
    return target
}()

/// Gives one input to the target.
func fuzzed(_ input: UnsafeRawBufferPointer) {
    do {
        try target.check(Array(input))
    } catch {
        fatalError("\(target.rawValue): \(error)")
    }
}

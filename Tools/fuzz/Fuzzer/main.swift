// The fuzzer: libFuzzer makes inputs, the target named in DAYBOOK_FUZZ_TARGET looks at them. With
// `--list` it names the targets, with `--seeds PROJECT FOLDER` it writes what fuzzing begins with.
// Started by Tools/fuzz/run. Spec/testing/fuzzing.md.

import CLibFuzzer
import Foundation
import FuzzTargets

switch CommandLine.arguments.dropFirst().first {
case "--list":
    for target in FuzzTarget.allCases { print(target.rawValue, target.inputBytesMax) }
case "--seeds" where CommandLine.arguments.count == 4:
    let folder = URL(filePath: CommandLine.arguments[3])
    for target in FuzzTarget.allCases {
        let place = folder.appending(path: target.rawValue)
        try FileManager.default.createDirectory(at: place, withIntermediateDirectories: true)
        for (number, seed) in try FuzzSeeds(project: CommandLine.arguments[2])
            .inputs(of: target).enumerated()
        {
            try Data(seed).write(to: place.appending(path: "seed-\(number)"))
        }
    }
default:
    var count = CommandLine.argc
    var arguments: UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>? = CommandLine.unsafeArgv
    exit(
        LLVMFuzzerRunDriver(&count, &arguments) { data, count in
            fuzzed(UnsafeRawBufferPointer(start: data, count: count))
            return 0
        })
}

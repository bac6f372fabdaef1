// The fuzzer: libFuzzer generates inputs, the target named in DAYBOOK_FUZZ_TARGET checks them. `--list`
// lists the targets, `--seeds PROJECT FOLDER` writes the seeds. Started by Tools/fuzz/run.
// Spec/testing/fuzzing.md.

import CLibFuzzer
import Foundation
import FuzzTargets

switch CommandLine.arguments.dropFirst().first {
case "--list":
    for target in FuzzTarget.allCases { print(target.rawValue, target.inputBytesMax) }
case "--seeds" where CommandLine.arguments.count == 4:
    let folder = URL(filePath: CommandLine.arguments[3])
    for target in FuzzTarget.allCases {
        let targetFolder = folder.appending(path: target.rawValue)
        try FileManager.default.createDirectory(
            at: targetFolder, withIntermediateDirectories: true)
        for (number, seed) in try FuzzSeeds(project: CommandLine.arguments[2])
            .inputs(of: target).enumerated()
        {
            try Data(seed).write(to: targetFolder.appending(path: "seed-\(number)"))
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

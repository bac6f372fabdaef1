// Keeps one core busy while races are run, as another app does. Spec/benchmarks.

import Foundation

/// A process that keeps one core busy until `release()`. It also ends if this process ends.
struct BusyCore {
    private let process = Process()

    /// - Throws: if `taskset` or a shell cannot be started.
    init() throws {
        let loop = """
            while kill -0 \(ProcessInfo.processInfo.processIdentifier) 2> /dev/null; do
                i=0; while [ $i -lt 1000000 ]; do i=$((i + 1)); done
            done
            """
        process.executableURL = URL(filePath: "/usr/bin/env")
        // The system would move the loop away from a core that is used.
        process.arguments = ["taskset", "--cpu-list", "0", "sh", "-c", loop]
        try process.run()
    }

    /// Returns when the process has ended, so that its time counts for no later race.
    func release() async {
        await withCheckedContinuation { continuation in
            process.terminationHandler = { _ in continuation.resume() }
            kill(process.processIdentifier, SIGKILL)
        }
    }
}

/// Runs a race, and again with one core kept busy.
///
/// - Parameters:
///   - withBusyCore: false to run it once.
///   - race: returns the result.
func runRace(
    withBusyCore: Bool, _ race: () async throws -> RaceResult
) async throws -> [RaceResult] {
    let free = try await race()
    guard withBusyCore else { return [free] }
    let core = try BusyCore()
    reportProgress("\(free.name): again, with one core busy")
    let result: Result<RaceResult, any Error>
    do { result = .success(try await race()) } catch { result = .failure(error) }
    await core.release()
    var busy = try result.get()
    busy.hasBusyCore = true
    return [free, busy]
}

// Makes every file system call of a workload fail in every way, once and permanently, and checks the errors
// that the log reports and the log that is left after the faults. Spec/testing/testing.md: faults F7 and F8,
// invariants I1, I3, I11 and I12.

import EventSourcing
import LogFormat
import LogStorage

/// A search through the ways in which file system calls can fail.
public struct FaultSearch: Sendable {
    /// The number of calls and faults of each kind.
    public private(set) var counts: [String: Int] = [:]

    /// Creates a search.
    public init() {}

    /// Runs a workload once for each of its calls, each fault that the call can have, and each duration of
    /// the fault.
    ///
    /// - Parameters:
    ///   - workload: the operations.
    ///   - part: restricts the search to calls whose number modulo `parts` is `part`.
    ///   - parts: the number of parts of the search.
    /// - Throws: `FaultFailure` where an invariant does not hold.
    public mutating func explore(
        _ workload: Workload, part: Int = 0, of parts: Int = 1
    ) async throws {
        let rehearsal = SimulatedFileSystem()
        let run = await workload.run(on: rehearsal, records: false)
        let names = rehearsal.callNames
        for call in run.callsAtStart..<names.count where call % parts == part {
            count("calls made to fail")
            for fault in SimulatedFault.all where fault.isPossible(in: names[call]) {
                for isForGood in [false, true] {
                    let machine = SimulatedFileSystem()
                    machine.fail(call: call, fault, forGood: isForGood)
                    do {
                        try await runAndCheck(workload, on: machine)
                    } catch {
                        throw FaultFailure(
                            workload: workload, call: call, name: names[call], fault: fault,
                            isForGood: isForGood, cause: error)
                    }
                    count(isForGood ? "faults for good" : "faults once")
                    if case .failedSync(let how) = fault { count("failed sync, \(how.rawValue)") }
                }
            }
        }
    }

    private mutating func count(_ label: String) { counts[label, default: 0] += 1 }

    private func runAndCheck(
        _ workload: Workload, on machine: SimulatedFileSystem
    ) async throws {
        let run = await workload.run(on: machine, records: false)
        try RecoveryCheck.require(
            machine.faultsHit > 0, "I13", "the second run did not make the call that should fail")
        machine.endFaults()
        // A thread that has just finished its work may still reference the log.
        for attempt in 0..<5_000 where !machine.openFiles.isEmpty {
            if attempt < 200 {
                await Task.yield()
            } else {
                try await Task.sleep(for: .milliseconds(1))
            }
        }
        try RecoveryCheck.require(
            machine.openFiles.isEmpty, "I12",
            "files left open: \(machine.openFiles), after the failures \(run.failures)")
        var old = Choices(replaying: [])
        for (circumstance, files) in [
            ("after a kill", machine.afterKill()),
            ("after a power cut", machine.afterPowerCut(&old)),
        ] {
            do { try checkLog(of: run, files) } catch {
                throw BrokenInvariant("\(error)", circumstance)
            }
        }
    }

    /// Compares the log's events with the results of the appends.
    private func checkLog(of run: WorkloadRun, _ files: SimulatedFileSystem) throws {
        let log = try Log(at: Workload.directory, environment: Workload.environment(files))
        var positions: [UInt128: Position] = [:]
        var hasDuplicates = false
        try LogReader(Workload.directory, fileSystem: files).forEachLine { prefix, _ in
            hasDuplicates =
                hasDuplicates
                || positions.updateValue(prefix.position, forKey: prefix.id) != nil
            return true
        }
        try RecoveryCheck.require(!hasDuplicates, "I3", "an event is stored twice")
        for id in run.acknowledged {
            let position = try positions[id] ?? log.removed(id: id)?.position
            try RecoveryCheck.require(
                position != nil && position == run.positions[id], "I1",
                "an acknowledged event is at \(String(describing: position)), not at "
                    + String(describing: run.positions[id]))
        }
        for id in run.refused {
            try RecoveryCheck.require(
                positions[id] == nil, "I11",
                "an event is stored although its append failed with nothing recorded")
        }
        try RecoveryCheck.require(
            positions.keys.allSatisfy {
                run.positions[$0] != nil || run.indeterminate.contains($0)
            },
            "I3", "an event is stored that was never appended")
        try RecoveryCheck.checkContinuation(of: log, files)
    }
}

extension SimulatedFault {
    /// Whether a call of this name can have this fault.
    func isPossible(in call: StaticString) -> Bool {
        switch self {
        case .error(.noSpace): "\(call)" != "read" && "\(call)" != "inspect"
        case .error: true
        case .shortWrite: "\(call)" == "write"
        case .failedSync: "\(call)" == "sync"
        }
    }
}

/// A failing call after which an invariant does not hold.
public struct FaultFailure: Error, CustomStringConvertible {
    /// The operations.
    public let workload: Workload
    /// The number of the call.
    public let call: Int
    let name: StaticString
    /// The fault of the call.
    public let fault: SimulatedFault
    /// Whether all later calls failed as well.
    public let isForGood: Bool
    /// The invariant that does not hold, or the error of the log.
    public let cause: any Error

    /// The cause, the workload and the call, one a line.
    public var description: String {
        """
        the log did not recover from a failed call: \(cause)
          workload \(workload)
          call \(call) (\(name)), \(fault), \(isForGood ? "for good" : "once")
        """
    }
}

// Lets every call of a workload fail in every way, once and for good, and looks what the log says and
// what is left when the faults are over. Spec/testing/testing.md: faults F7
// and F8, invariants I1, I3, I11 and I12.

import EventSourcing
import LogFormat
import LogStorage

/// A search through the ways in which calls can fail.
public struct FaultSearch: Sendable {
    /// What was tried, by what it is.
    public private(set) var counts: [String: Int] = [:]

    /// Creates a search.
    public init() {}

    /// Runs a workload once for each of its calls, each fault that the call can have, and both
    /// durations.
    ///
    /// - Parameters:
    ///   - workload: what is done.
    ///   - part: only calls whose number leaves this remainder …
    ///   - parts: … divided by this number.
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
                        try await look(workload, machine)
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

    private func look(_ workload: Workload, _ machine: SimulatedFileSystem) async throws {
        let run = await workload.run(on: machine, records: false)
        try RecoveryCheck.require(machine.faultsHit > 0, "I13", "the call was not made again")
        machine.endFaults()
        // A thread whose work has just ended may still hold the log.
        for attempt in 0..<5_000 where !machine.openFiles.isEmpty {
            if attempt < 200 {
                await Task.yield()
            } else {
                try await Task.sleep(for: .milliseconds(1))
            }
        }
        try RecoveryCheck.require(
            machine.openFiles.isEmpty, "I12",
            "left open: \(machine.openFiles), after \(run.failures)")
        var old = Choices(replaying: [])
        for (world, files) in [
            ("after a kill", machine.afterKill()),
            ("after a power cut", machine.afterPowerCut(&old)),
        ] {
            do { try check(run, files) } catch {
                throw BrokenInvariant("\(error)", world)
            }
        }
    }

    /// Holds what is there to what the appends said.
    private func check(_ run: WorkloadRun, _ files: SimulatedFileSystem) throws {
        let log = try Log(at: Workload.directory, environment: Workload.environment(files))
        var found: [UInt128: Position] = [:]
        var isTwice = false
        try LogReader(Workload.directory, fileSystem: files).forEachLine { prefix, _ in
            isTwice = isTwice || found.updateValue(prefix.position, forKey: prefix.id) != nil
            return true
        }
        try RecoveryCheck.require(!isTwice, "I3", "an event is there twice")
        for id in run.acknowledged {
            let position = try found[id] ?? log.removed(id: id)?.position
            try RecoveryCheck.require(
                position != nil && position == run.positions[id], "I1",
                "an acknowledged event is at \(String(describing: position)), not at "
                    + String(describing: run.positions[id]))
        }
        for id in run.refused {
            try RecoveryCheck.require(
                found[id] == nil, "I11", "an event is there whose append failed for sure")
        }
        try RecoveryCheck.require(
            found.keys.allSatisfy { run.positions[$0] != nil || run.indeterminate.contains($0) },
            "I3", "an event is there that nobody appended")
        try RecoveryCheck.workOn(log, files)
    }
}

extension SimulatedFault {
    /// Whether a call of this name can fail so.
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
    /// What was to be done.
    public let workload: Workload
    /// The number of the call.
    public let call: Int
    let name: StaticString
    /// How it failed.
    public let fault: SimulatedFault
    /// Whether all later calls failed as well.
    public let isForGood: Bool
    /// What is wrong.
    public let cause: any Error

    /// All of it, in several lines.
    public var description: String {
        """
        a failing call was not survived: \(cause)
          workload \(workload)
          call \(call) (\(name)), \(fault), \(isForGood ? "for good" : "once")
        """
    }
}

// The costs for a phone: wear of its flash, wake-ups, memory, the size of an app. Spec/benchmarks
// describes how each is measured.

import Foundation

/// The measurements for a phone.
struct Phone {
    /// The costs of one way to record, for each event.
    struct Wear: Encodable {
        var work: String
        var who: String
        var events: Int
        /// The bytes of its line.
        var lineBytes: Double
        /// The bytes passed to the system.
        var bytes: Double
        /// The bytes that the system writes, in whole pages.
        var deviceBytes: Double
        var writes: Double?
        var syncs: Double?
        /// The bytes passed to the system, divided by the bytes of lines.
        var amplification: Double
        /// The bytes of pages, divided by the bytes of lines.
        var deviceAmplification: Double
    }

    /// The costs of an idle process.
    struct Idle: Encodable {
        /// The open store or service.
        var subject: String
        var seconds: Int
        var wakeUps: Int
        var processorMilliseconds: Double
        var residentMiBAtOpen: Double
        var residentMiBAfter: Double
    }

    /// The costs of a list's observers.
    struct Observers: Encodable {
        var notes: Int
        /// Processor time of an event, in microseconds.
        var microseconds: Observing.Figures
    }

    /// The costs of opening a store with Codable states.
    struct States: Encodable {
        var views: Int
        /// The entries of each view's state.
        var entries: Int
        var opening: Opening.Figures
        /// The peak memory of the process that has measured both ways.
        var peakMiB: Double
    }

    /// All measurements.
    struct Result: Encodable {
        var origin: Origin
        var wear: [Wear]
        var idle: [Idle]
        var observers: [Observers]
        var states: [States]
    }

    let origin: Origin
    let source: Input.Source
    let folder: URL
    /// The events for each way to record.
    let events: Int
    /// The seconds for which an idle process is watched.
    let idleSeconds: UInt32

    /// The entries of a Codable state.
    let stateEntries: Int

    static let idleEvents = 100_000
    /// The most events under strace, which slows every call.
    private static let tracedMax = 2_000

    func measure() throws -> Result {
        var wear: [Wear] = []
        for batch in [1, 10, nil] {
            for recorder in [Writing.Recorder.daybook, .sqlite] {
                // SQLite has no equivalent of relaxed durability.
                guard batch != nil || recorder == .daybook else { continue }
                wear += try self.wear(recorder, batch)
                reportProgress("phone: \(wear.last?.work ?? ""), \(recorder.rawValue)")
            }
        }
        return Result(
            origin: origin, wear: wear, idle: try idle(), observers: try observers(),
            states: try states())
    }

    // MARK: Flash

    private func wear(_ recorder: Writing.Recorder, _ batch: Int?) throws -> [Wear] {
        func errand(_ folder: Folder) -> Writing {
            Writing(
                recorder: recorder, batch: batch, events: events, folder: folder.url.path,
                source: source)
        }
        func inFolder<Outcome>(_ body: (Writing) throws -> Outcome) throws -> Outcome {
            let folder = try Folder(in: folder)
            defer { folder.remove() }
            return try body(errand(folder))
        }
        let figures = try inFolder { try $0.inOwnProcess().figures }
        let way =
            switch batch {
            case nil: "relaxed appends"
            case 1: "single commits"
            case let count?: "batches of \(count)"
            }
        func row(_ work: String, _ who: String, _ counts: Writing.Counts) -> Wear {
            let count = Double(events)
            return Wear(
                work: work, who: who, events: events, lineBytes: figures.lineBytes / count,
                bytes: counts.bytes / count, deviceBytes: counts.deviceBytes / count,
                writes: counts.writes.map { $0 / count }, syncs: counts.syncs.map { $0 / count },
                amplification: counts.bytes / figures.lineBytes,
                deviceAmplification: counts.deviceBytes / figures.lineBytes)
        }
        switch recorder {
        case .daybook:
            return [
                row(way, RaceResult.ours, figures.recorded),
                row("\(way), and a compaction", RaceResult.ours, figures.all),
            ]
        case .sqlite:
            var row = row("\(way), and a checkpoint at the end", "SQLite", figures.all)
            let calls = try inFolder { errand in
                var errand = errand
                errand.events = min(events, Self.tracedMax)
                return try SystemCalls.count(during: errand)?.divided(by: errand.events)
            }
            (row.writes, row.syncs) = (calls?.writes, calls?.syncs)
            return [row]
        }
    }

    // MARK: Screens

    private func observers() throws -> [Observers] {
        try [1_000, 10_000, 100_000].map { notes in
            reportProgress("phone: observers of \(notes) notes")
            let folder = try Folder(in: folder)
            defer { folder.remove() }
            let errand = Observing(
                log: folder.url.appending(path: "log").path, notes: notes, events: 1_000)
            return Observers(notes: notes, microseconds: try errand.inOwnProcess().figures)
        }
    }

    // MARK: Opening

    private func states() throws -> [States] {
        try [1, 10].map { views in
            reportProgress("phone: opening with \(views) Codable states of \(stateEntries) entries")
            let folder = try Folder(in: folder)
            defer { folder.remove() }
            let errand = Opening(
                log: folder.url.appending(path: "log").path, entries: stateEntries, views: views)
            let measured = try errand.inOwnProcess()
            return States(
                views: views, entries: stateEntries, opening: measured.figures,
                peakMiB: measured.peakMiB)
        }
    }

    // MARK: Idle

    private func idle() throws -> [Idle] {
        let folder = try Folder(in: folder)
        defer { folder.remove() }
        let log = folder.url.appending(path: "log").path
        _ = try LogWork(kind: .append, log: log, events: Self.idleEvents, source: source)
            .inOwnProcess()
        return try Idling.Subject.allCases.map { subject in
            reportProgress("phone: idle for \(idleSeconds) s, \(subject.rawValue)")
            let figures = try Idling(subject: subject, log: log, seconds: idleSeconds)
                .inOwnProcess().figures
            return Idle(
                subject: subject.rawValue, seconds: Int(idleSeconds),
                wakeUps: figures.wakeUps,
                processorMilliseconds: figures.processorMilliseconds,
                residentMiBAtOpen: figures.residentMiBAtOpen,
                residentMiBAfter: figures.residentMiBAfter)
        }
    }
}

// The ways in which offline queues lose, strand or double changes. QueueTrial+Ways.swift has the scripts.

import Foundation

/// A way in which hand-made offline queues lose, strand or double the changes of their users.
///
/// ```swift
/// let report = await QueueTrial.run(JSONFileQueue.self)
/// print(report)
/// #expect(report.failed.isEmpty)
/// ```
public enum QueueTrial: String, CaseIterable, Sendable {
    /// The queue is in memory only, or is saved later.
    case memoryOnly = "memory only"
    /// A file that was purged or cannot be read counts as an empty queue.
    case unreadableTakenForEmpty = "unreadable taken for empty"
    /// A kill leaves a change marked as being sent.
    case strandedInFlight = "stranded in flight"
    /// The queue is sent only when the network comes back.
    case sendsOnEdgeOnly = "sends on an edge only"
    /// Only the first page of the queue is sent.
    case onePageDrained = "one page drained"
    /// Attempts without a network count, or follow each other without a wait.
    case attemptsBurnt = "attempts burnt"
    /// Answers 401 count as attempts.
    case expiredSession = "expired session"
    /// A time-out counts as the server's last word.
    case timeOutTakenForFinal = "time-out taken for final"
    /// The answer of a proxy counts as that of the API.
    case proxyTakenForAPI = "proxy taken for the API"
    /// The server has applied a change, and the device cannot record that.
    case bookkeepingFailed = "bookkeeping failed"
    /// A logout deletes the queue, or the next user sends it.
    case lostAtLogout = "lost at logout"
    /// A change that the server refused is shown nowhere.
    case deadLettersUnseen = "dead letters unseen"
    /// A change that the server refuses stops all others.
    case poisonBlocks = "poison blocks the rest"
    /// A refusal with the status 200 counts as success.
    case rejectedUnder200 = "rejection under 200"
    /// A change whose answer was lost is applied again.
    case replayDoubles = "replay doubles"
    /// A later change of an entity overtakes an earlier one.
    case orderBroken = "order broken"

    /// What a user of the queue meets, in one sentence.
    public var consequence: String {
        switch self {
        case .memoryOnly: "Changes made before the app is killed are gone."
        case .unreadableTakenForEmpty:
            "All waiting changes are gone after the device was locked at launch or ran short of space."
        case .strandedInFlight: "The change that was being sent at a kill is never sent again."
        case .sendsOnEdgeOnly:
            "After a failed request on a good network, the change waits until the network goes and returns."
        case .onePageDrained: "After a long time offline, most changes stay on the device."
        case .attemptsBurnt:
            "A day without a network uses up the attempts, or an outage is answered with a flood."
        case .expiredSession: "Changes made while the session was expired are given up."
        case .timeOutTakenForFinal: "A slow connection makes a change disappear."
        case .proxyTakenForAPI: "The sign-in page of a hotel makes a change disappear."
        case .bookkeepingFailed: "On a full disk a change is applied a second time."
        case .lostAtLogout:
            "Changes are gone after a logout, or appear in the account of the next user."
        case .deadLettersUnseen: "A refused change disappears without a word."
        case .poisonBlocks: "One bad change keeps all later ones on the device."
        case .rejectedUnder200: "A change refused in the body of a 200 disappears without a word."
        case .replayDoubles: "After a lost answer the change is applied twice."
        case .orderBroken: "An older value overwrites a newer one."
        }
    }

    /// Tries a queue in some ways, each with a new queue, API and clock. Takes no real time.
    ///
    /// - Parameters:
    ///   - queue: the type of the queue.
    ///   - name: the name of the queue in the report; nil for that of the type.
    ///   - trials: the ways.
    /// - Returns: the report. An error of the queue makes a way fail.
    public static func run<Queue: OfflineQueue>(
        _ queue: Queue.Type, name: String? = nil, trials: [QueueTrial] = allCases
    ) async -> QueueTrialReport {
        var report = QueueTrialReport(queue: name ?? String(describing: queue))
        for trial in trials {
            report.outcomes.append((trial, await outcome(of: trial, queue)))
        }
        return report
    }

    private static func outcome<Queue: OfflineQueue>(
        of trial: QueueTrial, _ queue: Queue.Type
    ) async -> QueueTrialReport.Outcome {
        do {
            let api = ScriptedAPI()
            var run = TrialRun(api, try await queue.init(sendingTo: api))
            let losses = try await run.losses(in: trial)
            return losses.isEmpty ? .passed : .failed(losses: losses)
        } catch let error as NotTried {
            return .notTried(reason: error.description)
        } catch {
            return .failed(losses: ["the queue threw an error: \(error)"])
        }
    }
}

/// The outcomes of the trials of a queue. As text it has a line for each way, and under it what the user lost.
public struct QueueTrialReport: Sendable, CustomStringConvertible {
    /// The outcome of one way.
    public enum Outcome: Hashable, Sendable {
        /// Nothing is lost.
        case passed
        /// The user's losses, one a line.
        case failed(losses: [String])
        /// The queue lacks a requirement for this way.
        case notTried(reason: String)
    }

    /// The name of the queue.
    public var queue: String
    /// The ways that were tried, with their outcomes.
    public var outcomes: [(trial: QueueTrial, outcome: Outcome)] = []

    /// The ways that failed.
    public var failed: Set<QueueTrial> {
        trials { if case .failed = $0 { true } else { false } }
    }

    /// The ways that were not tried.
    public var notTried: Set<QueueTrial> {
        trials { if case .notTried = $0 { true } else { false } }
    }

    private func trials(_ isIncluded: (Outcome) -> Bool) -> Set<QueueTrial> {
        Set(outcomes.filter { isIncluded($0.outcome) }.map { $0.trial })
    }

    /// The report as text. At most three losses of a way are listed.
    public var description: String {
        var lines = ["\(queue): \(failed.count) of \(outcomes.count) ways lose changes"]
        for (trial, outcome) in outcomes {
            switch outcome {
            case .passed: lines.append("  passed     \(trial.rawValue)")
            case .notTried(let reason): lines.append("  not tried  \(trial.rawValue): \(reason)")
            case .failed(let losses):
                lines.append("  FAILED     \(trial.rawValue): \(trial.consequence)")
                lines += losses.prefix(3).map { "               \($0)" }
                if losses.count > 3 { lines.append("               and \(losses.count - 3) more") }
            }
        }
        return lines.joined(separator: "\n")
    }

    /// A table in Markdown: a row for each way, a column for each queue.
    ///
    /// - Parameter reports: the reports of the queues, of the same ways.
    public static func table(_ reports: [QueueTrialReport]) -> String {
        func row(_ cells: [String]) -> String { "| \(cells.joined(separator: " | ")) |" }
        var lines = [
            row(["way"] + reports.map(\.queue)), row(reports.map { _ in "---" } + ["---"]),
        ]
        for trial in (reports.first?.outcomes ?? []).map({ $0.trial }) {
            let cells = reports.map { report in
                switch report.outcomes.first(where: { $0.trial == trial })?.outcome {
                case .passed: "passed"
                case .notTried, nil: "not tried"
                case .failed(let losses): losses.first ?? "failed"
                }
            }
            lines.append(row([trial.rawValue] + cells))
        }
        return lines.joined(separator: "\n")
    }
}

// The findings of a report on a log, each with advice. Spec/operations/diagnostics.md.

import Foundation
import LogStorage
import Replay

extension DiagnosticReport {
    /// Something that needs attention.
    public struct Finding: Codable, Hashable, Sendable {
        /// The kinds of findings.
        public enum Code: String, Codable, Hashable, Sendable, CaseIterable {
            /// Events, stored states or the file with the rules are damaged.
            case damaged
            /// A file that is not the log's is in its folder.
            case otherFiles
            /// Others than the owner may read or write a file.
            case permissions
            /// Less than 100 MiB are free, or less than the log has.
            case littleSpace
            /// Actions are parked: the server has rejected them, or has deferred them five times.
            case parked
            /// Actions are in conflict and wait for a decision.
            case inConflict
            /// An action has been waiting for more than a day.
            case notSent
            /// Events have no rule, so they are not sent, although other types have one.
            case withoutRule
            /// The device's clock differs from the server's by more than five minutes.
            case clock
            /// The last run was refused: the token is of another account than the log, or the log has events of no
            /// known account.
            case account
        }

        /// The kind.
        public var code: Code
        /// What was found, in English.
        public var detail: String
        /// What to do about it, in English.
        public var advice: String
    }

    private static let littleSpaceBytes = 100 * 1024 * 1024
    private static let waitingMax: TimeInterval = 86_400
    private static let clockOffsetMax: Int64 = 300_000

    /// The findings of the other members.
    ///
    /// - Parameters:
    ///   - declaresTypes: whether rules of the app's own types are known: then a type without one is a mistake.
    ///   - hasUnusableRules: whether the log has a file with such rules that has none which can be read.
    func makeFindings(declaresTypes: Bool, hasUnusableRules: Bool) -> [Finding] {
        var findings: [Finding] = []
        func appendFinding(_ code: Finding.Code, _ detail: String, _ advice: String) {
            findings.append(Finding(code: code, detail: detail, advice: advice))
        }
        if !damage.isEmpty {
            let files = Set(damage.map(\.file)).sorted().joined(separator: ", ")
            appendFinding(
                .damaged, "\(damage.count.counted("damaged place")) in \(files)",
                "copy the folder; `logtool repair` shows what can be saved, LogMaintenance saves it"
            )
        }
        if hasUnusableRules {
            appendFinding(
                .damaged, "the file `rules` has no rule that can be read",
                "open the log with its app, which writes the file anew with the next event; until then tools do "
                    + "not know which of the app's events are to be sent")
        }
        let others = files.count { $0.name == Self.otherName }
        if others > 0 {
            appendFinding(
                .otherFiles, "\(others.counted("file")) in the log's folder that no log has",
                "move them away: the folder belongs to the log alone")
        }
        let open = files.count {
            $0.mode.flatMap { Int($0, radix: 8) }.map { $0 & 0o077 != 0 } ?? false
        }
        if open > 0 {
            appendFinding(
                .permissions, "\(open.counted("file")) that others than the owner may use",
                "set 0600 for files and 0700 for folders (chmod)")
        }
        if let freeBytes, freeBytes < max(Self.littleSpaceBytes, log?.diskBytes ?? 0) {
            appendFinding(
                .littleSpace, "free space: \(freeBytes.counted("byte"))",
                "make space: compaction writes a segment anew before it removes the old one")
        }
        guard let outbox, let sync else { return findings }
        if outbox.parked > 0 {
            appendFinding(
                .parked, "\(outbox.parked.counted("action")) parked",
                "see `logtool parked`; each is retried or discarded")
        }
        for entry in outbox.held where entry.parking == OutboxEntry.Parking.setAside.rawValue {
            appendFinding(
                .parked,
                "the event \(entry.id.text) is set aside: requests with it alone fail "
                    + "(\(entry.code ?? "no code")), and the server accepts others",
                "find out what refuses its content, such as a proxy; it is sent again by itself, or edit or "
                    + "discard it with `logtool parked`")
        }
        if outbox.inConflict > 0 {
            appendFinding(
                .inConflict, "\(outbox.inConflict.counted("action")) in conflict",
                "see `logtool parked`; each is resolved")
        }
        if let oldest = outbox.oldest, outbox.pending > 0,
            madeAt.timeIntervalSince(oldest) > Self.waitingMax
        {
            let contact = sync.lastExchange.map { "the last exchange was at \(Timestamp($0))" }
            appendFinding(
                .notSent,
                "\(outbox.pending.counted("action")) to be sent, the oldest from "
                    + "\(Timestamp(oldest)); \(contact ?? "nothing was ever exchanged")",
                "check the network, the token and the endpoint; the status of the store says why")
        }
        if declaresTypes || hasUnusableRules, outbox.withoutRule > 0 {
            appendFinding(
                .withoutRule,
                "\(outbox.withoutRule.counted("event")) of types without a rule: they are not sent",
                "declare a rule for each type that the app records, also for one that it only recorded in "
                    + "the past")
        }
        if sync.clockOffset.magnitude > UInt64(Self.clockOffsetMax) {
            appendFinding(
                .clock,
                "the device's clock is \(abs(sync.clockOffset) / 1_000) s "
                    + (sync.clockOffset > 0 ? "behind" : "ahead of") + " the server's",
                "set the device's time; new events get the server's time meanwhile")
        }
        switch sync.accountRefusal {
        case TransportError.Code.accountNeeded.rawValue:
            appendFinding(
                .account, "the log has events of no known account, so nothing was sent or read",
                "open the log with its account, or have the token's account adopt the events")
        case nil: break
        default:
            appendFinding(
                .account, "the token belongs to another account than the log",
                "sign in with the log's account; keep a folder for each account")
        }
        return findings
    }
}

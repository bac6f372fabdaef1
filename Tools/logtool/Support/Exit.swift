// Maps errors to exit codes and messages.

import ArgumentParser
import DaybookOffline
import LogFormat
import LogStorage
import StandardStreams

/// The exit codes of every command, after sysexits.h.
enum Exit {
    static let findings = ExitCode(1)
    static let usage = ExitCode(64)
    static let badData = ExitCode(65)
    static let noLog = ExitCode(66)
    static let io = ExitCode(74)
    static let unavailable = ExitCode(75)
    /// The status with which a shell reports a program that SIGINT ended.
    static let interrupted = ExitCode(130)

    /// Every exit code with its meaning. Help and man page print this table; a test compares
    /// Spec/operations/logtool.md with it.
    static let meanings: [(code: ExitCode, meaning: String)] = [
        (.success, "clean"),
        (findings, "findings; something to repair, parked or in conflict"),
        (usage, "wrong usage"),
        (badData, "bad data: a bad line, a damaged log, a newer format, another account's log"),
        (noLog, "no such log, file or event; a folder that is no log"),
        (io, "input or output failed; read-only; disk full; a limit of sql is reached"),
        (
            unavailable,
            "locked by another writer; something is still pending; compacted while it was read"
        ),
        (interrupted, "an export or a backup was interrupted; nothing was written"),
    ]

    /// Runs a command's work. Writes an error to stderr and throws its exit code.
    static func mapping(_ body: () async throws -> Void) async throws {
        // Rows that were written before an error must not be lost.
        defer { Stdout.flush() }
        do {
            try await body()
        } catch let error as ExitCode {
            throw error
        } catch let error as LogError {
            Message.error(error.description)
            if error.code == .corrupt { Message.note(Message.repairHint) }
            throw code(error.code)
        } catch let error as FileError {
            Message.error(error.description)
            throw error.code == .notFound ? noLog : io
        } catch let error as FileStoreError {
            Message.error(error.description)
            throw error.code == .noSpace || error.code == .io ? io : badData
        } catch let error as EventError {
            Message.error(error.description)
            throw badData
        } catch let error as TransportError {
            Message.error(error.description)
            throw usage
        } catch let error as SecretFile.Fault {
            Message.error(error.description)
            throw error.isUnreadable ? io : badData
        } catch is CancellationError {
            Message.error("interrupted")
            throw interrupted
        } catch let error as ValidationError {
            throw error
        } catch {
            // Not left to ArgumentParser, which would print the Swift value and end with 1, the code of findings.
            Message.error(ErrorText.of(error))
            throw io
        }
    }

    private static func code(_ code: LogError.Code) -> ExitCode {
        switch code {
        case .noSuchLog, .notALog: noLog
        case .newerVersion, .unknownFeature, .corrupt, .tooLarge, .wrongAccount: badData
        case .locked: unavailable
        case .readOnly, .diskFull, .io, .indeterminate, .closed, .suspended: io
        }
    }
}

/// Messages for people, on stderr. Each is one line without control characters, whatever it quotes.
enum Message {
    static func error(_ text: String) { note("logtool: \(text)") }
    static let repairHint = "`logtool repair` shows what can be saved of a damaged log"
    static func text(for tail: TornTail) -> String {
        "note: a torn tail of \(tail.byteCount) bytes at byte \(tail.offset) of \(tail.segment) "
            + "(\(tail.reason)): an unfinished write, which the next writer moves to quarantine"
    }
    /// The events that a repair keeps, and the positions that are lost.
    static func text(for report: RepairReport) -> String {
        var ranges: [String] = []
        for action in report.actions {
            ranges += action.lost.map {
                $0.lowerBound == $0.upperBound
                    ? "\($0.lowerBound)" : "\($0.lowerBound)–\($0.upperBound)"
            }
            if !action.endIsKnown, !action.lost.isEmpty {
                ranges.append(ranges.removeLast() + " at most")
            }
        }
        let lost =
            !ranges.isEmpty
            ? "positions lost to damage, not to compaction: " + ranges.joined(separator: ", ")
            : report.actions.contains { !$0.endIsKnown }
                ? "whether later positions are lost is not known"
                : report.missing == nil ? "no position is lost" : "no position is lost to damage"
        return report.kept.counted("event") + " kept; " + lost
    }
    static func text(forMissing positions: ClosedRange<Position>) -> String {
        "note: the folder is a copy, made file by file while a writer had the log open: it lacks "
            + positions.text
    }
    static func note(_ text: String) { write(Table.printable(text) + "\n") }
    /// Ignores a failure to write to standard error; the exit code still reports the error.
    static func write(_ text: String) { _ = StandardStream.error.write(Array(text.utf8)) }
}

// What the statements of one answer may use: time, memory, temporary files. Spec/operations/logtool.md, TOOL-58.

import Foundation
import GRDBSQLite
import LogStorage
import Synchronization

/// The limits of the statements of one answer. 0 sets no limit.
final class SQLLimits: Sendable {
    private let seconds: Double
    private let memoryMiB: Int
    private let temporaryMiB: Int
    /// The end of the time of the present answer, on `clock`; nil while there is none.
    private let end = Mutex<Duration?>(nil)

    private static let mebibyte = 1_048_576
    /// A row is copied before it is written, and may become longer: a blob of 60 MiB took 1.2 GiB. So it may have this
    /// part of the memory.
    private static let rowsInMemory = 32
    /// The steps of SQLite's virtual machine from one look at the clock to the next: about a millisecond.
    private static let stepsPerCheck: Int32 = 10_000

    init(seconds: Double = 60, memoryMiB: Int = 512, temporaryMiB: Int = 1_024) {
        (self.seconds, self.memoryMiB, self.temporaryMiB) = (seconds, memoryMiB, temporaryMiB)
    }

    // MARK: Time

    /// The time of the process, without the waits for the reader of standard output: a pager may stay open.
    private static let start = ContinuousClock.now
    private static var clock: Duration { ContinuousClock.now - start - Stdout.waited }

    /// Starts the time, and counts temporary files from here on.
    func begin() {
        SQLTemporaryFiles.begin(bytesMax: temporaryMiB > 0 ? temporaryMiB * Self.mebibyte : .max)
        end.withLock { $0 = seconds > 0 ? Self.clock + .seconds(seconds) : nil }
    }

    /// Ends the time of an answer.
    func finish() { end.withLock { $0 = nil } }

    /// The time since the end of the present answer's time; nil if it has time left, or there is no answer.
    private var overtime: Duration? {
        end.withLock { $0.map { Self.clock - $0 } }.flatMap { $0 > .zero ? $0 : nil }
    }

    private var isTimeOver: Bool { overtime != nil }

    private var timeText: String {
        "the time of \(seconds.formatted()) s is over; raise it: --time-limit"
    }

    /// Ends the process, as the error would, if an answer takes a second more than its time: SQLite cannot be
    /// interrupted within a call of a function, and `instr` on two long texts takes hours.
    func endStuckAnswers() {
        guard seconds > 0 else { return }
        Thread.detachNewThread {
            while self.overtime ?? .zero < .seconds(1) { Thread.sleep(forTimeInterval: 0.25) }
            Message.error(self.timeText)
            Stdout.flush()
            _exit(Exit.io.rawValue)
        }
    }

    /// Files whose reads fail once the time is over: a table may read the whole log before SQLite makes a step.
    var files: CountingFileSystem {
        CountingFileSystem { _ throws(FileError) in
            guard self.isTimeOver else { return }
            throw FileError(.io, operation: "read", path: "", reason: "the time is over")
        }
    }

    // MARK: SQLite

    /// Applies the limits to a connection, which must not outlive this object.
    func apply(to connection: OpaquePointer) {
        sqlite3_progress_handler(
            connection, Self.stepsPerCheck,
            { context in
                guard let context else { return 0 }
                return Unmanaged<SQLLimits>.fromOpaque(context).takeUnretainedValue().isTimeOver
                    ? 1 : 0
            }, Unmanaged.passUnretained(self).toOpaque())
        guard memoryMiB > 0 else { return }
        // Of the process.
        sqlite3_hard_heap_limit64(Int64(memoryMiB * Self.mebibyte))
        // SQLite itself bounds it by 1,000,000,000.
        sqlite3_limit(connection, SQLITE_LIMIT_LENGTH, Int32(clamping: rowBytesMax))
    }

    private var rowBytesMax: Int {
        memoryMiB > 0 ? memoryMiB * Self.mebibyte / Self.rowsInMemory : .max
    }

    /// Checks the size of a row before it is copied.
    func checkRow(bytes: Int) throws(SQLError) {
        guard bytes <= rowBytesMax else { throw Self.exceeded("row", rowBytesMax) }
    }

    /// The error for a result code of SQLite if it means that a limit is reached, else nil.
    func error(_ code: Int32) -> SQLError? {
        if isTimeOver {
            return SQLError(description: timeText, isOfSystem: true)
        }
        switch code {
        case SQLITE_NOMEM where memoryMiB > 0:
            return SQLError(
                description: "the statement needs more than \(memoryMiB) MiB of memory; raise it: "
                    + "--memory-limit", isOfSystem: true)
        case SQLITE_TOOBIG where memoryMiB > 0: return Self.exceeded("value", rowBytesMax)
        case SQLITE_FULL where SQLTemporaryFiles.isFull:
            return SQLError(
                description:
                    "the statement needs more than \(temporaryMiB) MiB of temporary files; "
                    + "raise it: --temp-limit", isOfSystem: true)
        default: return nil
        }
    }

    private static func exceeded(_ what: String, _ bytes: Int) -> SQLError {
        SQLError(
            description:
                "a \(what) has more than \(bytes / 1_024) KiB, a 32nd of the memory; raise "
                + "it: --memory-limit", isOfSystem: true)
    }
}

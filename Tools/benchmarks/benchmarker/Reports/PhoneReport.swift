// The phone report, as tables. `Tools/benchmark phone` writes it to Spec/benchmarks.

/// The report of the phone measurements.
struct PhoneReport {
    let result: Phone.Result

    var markdown: String {
        result.origin.markdown
            + "Wear of the flash, for one event:\n\n" + wear
            + "\nA process that is not used; the store has \(Markdown.count(Phone.idleEvents)) events:\n\n"
            + idle
            + "\nProcessor time of a durable append, with two observers of a city's notes, and of the longest "
            + "job of an actor on which the observers are:\n\n"
            + observers
            + "\nOpening a store whose views have `Codable` states in `TreeDictionary`s, an entry for each event:\n\n"
            + states
    }

    private var wear: String {
        Markdown.table(
            [
                "work", "program", "bytes of the line", "bytes written", "amplification",
                "bytes of pages", "amplification", "writes", "syncs",
            ],
            result.wear.map { row in
                [
                    row.work, row.who,
                    Markdown.number(row.lineBytes), Markdown.number(row.bytes),
                    Markdown.number(row.amplification), Markdown.number(row.deviceBytes),
                    Markdown.number(row.deviceAmplification), Markdown.number(row.writes),
                    Markdown.number(row.syncs),
                ]
            })
    }

    private var idle: String {
        Markdown.table(
            [
                "open", "watched", "wake-ups", "processor time", "memory after opening",
                "memory at the end",
            ],
            result.idle.map { row in
                [
                    row.subject, "\(row.seconds) s", "\(row.wakeUps)",
                    "\(Markdown.number(row.processorMilliseconds)) ms",
                    "\(Markdown.number(row.residentMiBAtOpen)) MiB",
                    "\(Markdown.number(row.residentMiBAfter)) MiB",
                ]
            })
    }

    private var observers: String {
        Markdown.table(
            [
                "notes", "a change, not observed", "another type of event",
                "a change of another city's note", "a change",
                "longest job",
            ],
            result.observers.map { row in
                [Markdown.count(row.notes)]
                    + [
                        row.microseconds.alone, row.microseconds.unrelated,
                        row.microseconds.elsewhere, row.microseconds.changed,
                        row.microseconds.longestJob,
                    ].map { "\(Markdown.number($0)) µs" }
            })
    }

    private var states: String {
        func milliseconds(_ seconds: Double) -> String { "\(Markdown.number(seconds * 1e3)) ms" }
        return Markdown.table(
            [
                "views", "entries of each", "folded anew", "processor time", "from a checkpoint",
                "processor time", "by folding anew", "peak memory",
            ],
            result.states.map { row in
                let (anew, stored) = (row.opening.foldedAnew, row.opening.fromCheckpoint)
                return [
                    "\(row.views)", Markdown.count(row.entries),
                    milliseconds(anew.elapsed), milliseconds(anew.processor),
                    milliseconds(stored.elapsed), milliseconds(stored.processor),
                    "\(Markdown.number(stored.elapsed / anew.elapsed)) ×",
                    "\(Markdown.number(row.peakMiB)) MiB",
                ]
            })
    }
}

// When the owner absorbs: once the log is open, after resume(), and when a companion has written.
// Spec/format/companions.md, COMP-9.

/// The absorption of one store.
struct AbsorptionControl {
    /// The absorption under way.
    var running: Task<AbsorptionReport, any Error>?
    /// The signals of the companions' folders.
    var watch: FolderWatch?
    /// The names of the spools that a log line was about.
    var warnedOf: Set<String> = []

    /// Makes the watching task look again.
    func signal() { watch?.signal() }

    /// Ends the watching task.
    mutating func end() {
        watch?.end()
        watch = nil
    }
}

// When the owner absorbs: once the log is open, after resume(), and when a companion has written.
// Spec/format/companions.md, COMP-9.

/// The absorption of one store.
struct AbsorptionControl {
    /// True if the store absorbs without being asked: an app's does, a tool's does not.
    var isAutomatic = false
    /// The absorption under way.
    var running: Task<AbsorptionReport, any Error>?
    /// The signals of the companions' folders.
    var watch: FolderWatch?
    /// The names of the spools that a log line was about.
    var warnedOf: Set<String> = []

    /// Waits for the absorption under way. Once its store is closed or suspended, it ends after its commit or its spool.
    func wait() async { _ = try? await running?.value }

    /// Ends the watching task.
    mutating func end() {
        watch?.end()
        watch = nil
    }
}

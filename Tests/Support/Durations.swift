// Durations longer than seconds, for tests that move a clock.

extension Duration {
    package static func minutes(_ minutes: Int) -> Duration { .seconds(minutes * 60) }
    package static func hours(_ hours: Int) -> Duration { .seconds(hours * 3_600) }
    /// The duration in whole milliseconds.
    package static func days(_ days: Double) -> Duration {
        .milliseconds(Int64(days * 86_400_000))
    }
}

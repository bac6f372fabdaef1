// Corrects the message of a failed opening. An opening can recover the last segment and then fail on an
// earlier one; its error must not claim that nothing was changed. Between LogStorage and StoreOpening.

import LogStorage

extension LogError {
    /// The sentence in a reader's error that claims that nothing was changed.
    private static let unchanged = "Nothing was changed"

    /// The error of an opening that recovered the log before it failed.
    func following(_ recovery: RecoveryReport) -> LogError {
        guard recovery.wasUnclean else { return self }
        var error = self
        let change =
            if let tail = recovery.tornTail {
                "the last segment was recovered: \(tail.byteCount) bytes of an unfinished write were "
                    + "set aside as \(tail.quarantinedAs ?? "nothing")"
            } else if recovery.removedUnfinishedSegment {
                "an unfinished segment was removed"
            } else {
                "the last segment was closed in order"
            }
        error.detail = detail.replacing(
            Self.unchanged, with: "Before that \(change). Nothing else was changed")
        return error
    }
}

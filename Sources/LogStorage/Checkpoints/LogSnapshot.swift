// What a writer knows of its log at one moment: taken in an instant, made into a checkpoint at
// leisure. Spec/format/checkpoint.md.

import LogFormat

/// A log at its last commit.
package struct LogSnapshot: Sendable {
    let logID: UInt128
    /// The last position; it is durable.
    package let position: Position
    let lastID: UInt128
    let sealed: [ClosedRange<Position>]
    let live: (contents: SegmentContents, dataEnd: Int)?

    /// The checkpoint with these states. O(events of the live segment).
    package func checkpoint(
        states: [StoredState], createdAt: Int64, seed: UInt32
    ) -> Checkpoint {
        Checkpoint(
            logID: logID, position: position, lastID: lastID, createdAt: createdAt, sealed: sealed,
            live: live.map {
                LiveSnapshot(
                    base: $0.contents.base, dataEnd: $0.dataEnd,
                    footer: $0.contents.footer(seed: seed, digest: 0))
            }, states: states)
    }
}

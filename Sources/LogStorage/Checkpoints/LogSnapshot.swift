// The writer's metadata of its log at one commit: copied under the lock in O(1), encoded as a checkpoint
// in the background. Spec/format/checkpoint.md.

import LogFormat

/// A log at its last commit.
package struct LogSnapshot: Sendable {
    let logID: UInt128
    /// The last position. It is durable.
    package let position: Position
    let lastID: UInt128
    let sealed: [ClosedRange<Position>]
    /// The seed of the last sealed segment's id index, which the live segment's gets as well.
    let idSeed: UInt32?
    let live: (contents: SegmentContents, dataEnd: Int)?

    /// Creates a checkpoint with these states. O(events of the live segment).
    ///
    /// - Parameter seed: the seed of the id index if no segment is sealed.
    package func checkpoint(
        states: [StoredState], createdAt: Int64, seed: UInt32
    ) -> Checkpoint {
        Checkpoint(
            logID: logID, position: position, lastID: lastID, createdAt: createdAt, sealed: sealed,
            live: live.map {
                LiveSnapshot(
                    base: $0.contents.base, dataEnd: $0.dataEnd,
                    footer: $0.contents.footer(seed: idSeed ?? seed, digest: 0))
            }, states: states)
    }
}

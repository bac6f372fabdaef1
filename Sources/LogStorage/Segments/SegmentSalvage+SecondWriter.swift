// Recognises the lines of a second writer: two lines with one position and different ids. One writer removes
// what it does not continue. Spec/format/repair.md, REP-7.

import LogFormat

extension SegmentSalvage {
    /// Lines of a second writer, which the pieces do not have.
    struct SecondWriter {
        /// The offset of their first frame.
        var offset: Int
        /// The positions, which have other lines in the pieces.
        var positions: [ClosedRange<Position>]
    }

    /// Compares a frame that is no piece with the pieces of the same positions.
    ///
    /// - Complexity: O(pieces), and the frames that overlap are read again.
    mutating func findSecondWriter(in frame: SalvagedFrame, at offset: Int, of file: any File)
        throws(FileError)
    {
        var found: ClosedRange<Position>?
        for piece in pieces where piece.positions.overlaps(frame.positions) {
            let kept = try self.frame(of: piece, in: file)
            for line in frame.lines {
                let position = line.prefix.position
                guard let other = kept?.lines.first(where: { $0.prefix.position == position }),
                    other.prefix.id != line.prefix.id
                else { continue }
                found = (found?.lowerBound ?? position)...position
            }
        }
        guard let found else { return }
        if secondWriter == nil { secondWriter = SecondWriter(offset: offset, positions: []) }
        secondWriter?.positions.append(found)
    }
}

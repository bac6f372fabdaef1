// A segment that others follow and that yet does not end with a footer: the footer is damaged, or the
// file is not the one that was sealed. Its lines are found frame by frame, without the footer's frame
// list. Used where SealedSegment cannot be. Spec/recovery.md, REC-10.

import LogFormat

/// What can be read of a segment that should be sealed and has no usable footer.
struct UnsealedSegment {
    let path: String
    let file: any File
    let header: SegmentHeader
    let salvage: SegmentSalvage

    /// Reads a segment's file.
    ///
    /// - Throws: `LogError` where the header cannot be read.
    /// - Complexity: O(bytes).
    init(_ path: String, file: any File, header: SegmentHeader) throws(LogError) {
        self.path = path
        self.file = file
        self.header = header
        salvage = try storage { () throws(FileError) in
            try SegmentSalvage(file, from: header.base)
        }
    }

    /// The last position that can be read; before the base if there is none.
    var last: Position { salvage.last ?? Position(header.base.rawValue - 1) }

    /// What is wrong, with its place: the first damage in the file, mostly the footer.
    var error: LogError {
        let lines = header.base...max(header.base, last)
        let damage = salvage.damage
        if let damage, damage.offset < salvage.contentEnd {
            return LogError(
                .corrupt, path: path, offset: damage.offset,
                positions: salvage.missing(in: lines).first,
                damage.detail + " in a sealed segment, nor can its footer. Nothing was changed")
        }
        var detail = "the segment's footer is damaged"
        var offset = salvage.contentEnd
        if damage == nil, let end = salvage.endingEnd {
            offset = end
            detail = "zeros follow the footer of a segment that others follow"
        } else if damage == nil {
            detail = "others follow the segment, and yet it has no footer"
        }
        return LogError(
            .corrupt, path: path, offset: offset, positions: lines,
            detail + (salvage.last == nil ? "" : "; the lines before it are intact")
                + ". Nothing was changed")
    }
}

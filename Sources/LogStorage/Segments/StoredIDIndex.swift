// The id index of a checkpoint's live segment, left where it is until it is needed: an opening that
// neither records nor looks for an id does without. Spec/format/checkpoint.md, CHK-7.

import LogFormat

/// An id index in a checkpoint's file.
package struct StoredIDIndex: Sendable {
    private let file: any File
    private let offset: Int
    private let live: LiveSnapshot

    init(_ live: LiveSnapshot, in file: any File, at offset: Int) {
        self.live = live
        self.file = file
        self.offset = offset
    }

    /// Reads it; nil where it is damaged or cannot be read. It is a cache: the segment has the ids.
    func read() -> IDIndex? {
        guard let bytes = try? file.read(at: offset, count: live.idIndexBytes) else { return nil }
        return try? live.idIndex(bytes)
    }
}

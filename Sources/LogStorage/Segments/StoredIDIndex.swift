// The id index of a checkpoint's live segment, read from the file only when it is first needed: a session
// that neither appends nor looks up an id does not read it. Spec/format/checkpoint.md, CHK-7.

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

    /// Reads the index; nil if it is damaged or cannot be read. The caller then reads the ids from the
    /// segment.
    func read() -> IDIndex? {
        guard let bytes = try? file.read(at: offset, count: live.idIndexBytes) else { return nil }
        return try? live.idIndex(bytes)
    }
}

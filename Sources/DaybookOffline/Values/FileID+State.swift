// How the model's states and catalogue write a file's id.

import Daybook

extension FileID {
    /// The id of the empty content, in the catalogue's examples.
    static var example: FileID { FileID(of: []) }
}

extension StateWriter {
    /// Writes a file's id.
    mutating func write(_ file: FileID) { file.write(to: &self) }
}

extension StateReader {
    /// Reads a file's id.
    mutating func file() throws(EventError) -> FileID { try FileID(from: &self) }
}

// A log as it was at one moment, while other processes go on writing and compacting it. Spec/operations/studio.md,
// STU-11.

import LogFormat
import LogStorage

/// A file system in which the files of one log stay as they were when it was created.
///
/// Checkpoints and up to `openSegmentsMax` segments stay open, so a file that is replaced or removed meanwhile can
/// still be read; the last segment, which grows in place, is in memory. A segment that was closed is opened again
/// by its name; if compaction has replaced it, reading fails (`notFound`). Other files are read as they are.
struct LogSnapshot: ForwardingFileSystem {
    let base: any FileSystem
    private let directory: String
    /// The entries of the folder.
    private let names: [String]
    /// The files, by their paths.
    private let files: [String: any File]

    /// Below the least usual limit of open files, 256.
    static let openSegmentsMax = 128
    /// The number of attempts to open all files between two steps of a compaction.
    private static let attemptsMax = 100

    /// Opens the files of a log. Takes no lock.
    ///
    /// - Throws: `LogError`.
    /// - Complexity: O(segments), and the bytes of the last one.
    init(of directory: String, _ base: any FileSystem = POSIXFileSystem()) throws {
        (self.base, self.directory) = (base, directory)
        var attempt = 1
        while true {
            // Before the segments: a checkpoint must not be ahead of the log.
            var files = try Self.checkpoints(of: directory, base)
            let segments = try LogDirectory.segments(of: directory, base)
            try Self.open(segments, of: directory, base, into: &files)
            // A file that a compaction replaced meanwhile belongs to another state of the log.
            if try attempt == Self.attemptsMax
                || Self.areCurrent(files, segments, of: directory, base)
            {
                names = try base.list(directory).filter {
                    SegmentName.base($0) == nil || segments.contains($0)
                }
                self.files = files
                return
            }
            attempt += 1
        }
    }

    private static func checkpoints(
        of directory: String, _ base: any FileSystem
    ) throws -> [String: any File] {
        var files: [String: any File] = [:]
        for slot in LogDirectory.checkpointSlots {
            let path = "\(directory)/\(LogDirectory.checkpoints)/\(slot)"
            files[path] = try? base.open(path, .read)
        }
        return files
    }

    private static func open(
        _ segments: [String], of directory: String, _ base: any FileSystem,
        into files: inout [String: any File]
    ) throws {
        let opened = SegmentFiles(base, openMax: openSegmentsMax)
        for name in segments {
            let path = "\(directory)/\(name)"
            do throws(FileError) {
                let file = try base.open(path, .read)
                files[path] =
                    name == segments.last
                    ? try MemoryFile(file) : try opened.adopt(file, path: path)
            } catch { throw LogError(error) }
        }
    }

    private static func areCurrent(
        _ files: [String: any File], _ segments: [String], of directory: String,
        _ base: any FileSystem
    ) throws -> Bool {
        try segments.allSatisfy { name in
            let path = "\(directory)/\(name)"
            guard let current = try? base.open(path, .read).identity() else { return false }
            return try files[path]?.identity() == current
        }
    }

    func list(_ path: String) throws(FileError) -> [String] {
        try path == directory ? names : base.list(path)
    }

    func open(_ path: String, _ mode: OpenMode) throws(FileError) -> any File {
        if let file = files[path] { return file }
        let name = String(path.split(separator: "/").last ?? "")
        let checkpoints = "\(directory)/\(LogDirectory.checkpoints)/"
        guard SegmentName.base(name) == nil, !path.hasPrefix(checkpoints) else {
            throw FileError(
                .notFound, operation: "open", path: path, reason: "the file is newer than the copy")
        }
        return try base.open(path, mode)
    }
}

/// The bytes of a file in memory.
private final class MemoryFile: ForwardingFile {
    let file: any File
    private let bytes: [UInt8]
    private static let chunkBytes = 64 * 1_024

    /// Reads a file from its end to its beginning: what a writer appends meanwhile is found without what it appends
    /// after that, never the other way round.
    init(_ file: any File) throws(FileError) {
        self.file = file
        var bytes = [UInt8](repeating: 0, count: try file.size())
        for start in stride(from: 0, to: bytes.count, by: Self.chunkBytes).reversed() {
            let chunk = try file.read(at: start, count: min(Self.chunkBytes, bytes.count - start))
            bytes.replaceSubrange(start..<start + chunk.count, with: chunk)
        }
        self.bytes = bytes
    }

    func size() throws(FileError) -> Int { bytes.count }

    func read(at offset: Int, count: Int) throws(FileError) -> [UInt8] {
        Array(bytes.dropFirst(offset).prefix(count))
    }
}

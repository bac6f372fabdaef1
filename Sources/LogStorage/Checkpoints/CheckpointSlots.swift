// Reads and writes the two checkpoint files of a log. Writing alternates between them, so that a valid
// one exists at any moment. Spec/format/checkpoint.md.

import LogFormat

/// The two stored checkpoints of a log.
package struct CheckpointSlots: Sendable {
    private let directory: String
    private let fileSystem: any FileSystem

    /// Creates access to the checkpoints of the log in `directory`. Opens nothing.
    package init(_ directory: String, fileSystem: any FileSystem) {
        self.directory = directory
        self.fileSystem = fileSystem
    }

    private var folder: String { directory + "/" + LogDirectory.checkpoints }

    /// True if `checkpoints` is a folder and not a symbolic link to one, which is never followed.
    var isFolder: Bool {
        do throws(FileError) {
            _ = try fileSystem.open(folder, .read)
            return false
        } catch { return error.code == .wrongKind }
    }

    /// The content of a slot.
    package enum Content: Sendable {
        case checkpoint(Checkpoint)
        /// A file that cannot be used, with the reason.
        case bad(String)
    }

    /// The contents of the slots that are not empty, by name.
    package func contents() -> [(slot: String, content: Content)] {
        guard isFolder else { return [] }
        return LogDirectory.checkpointSlots.compactMap { slot in
            content(of: slot).map { (slot, $0) }
        }
    }

    private func content(of slot: String) -> Content? {
        do {
            let file = try fileSystem.open(folder + "/" + slot, .read)
            let size = try file.size()
            guard size <= FormatLimit.checkpointPlaintextBytesMax else {
                return .bad(
                    "the file has \(size) bytes; a checkpoint has at most "
                        + "\(FormatLimit.checkpointPlaintextBytesMax)")
            }
            let bytes = try file.read(at: 0, count: size)
            return .checkpoint(try Checkpoint(bytes.span.bytes))
        } catch let error as FileError where error.code == .notFound {
            return nil
        } catch {
            return .bad("\(error)")
        }
    }

    /// The valid checkpoints without their id indexes, newest first, each read on demand. Leaves out a
    /// damaged one.
    package func usable() -> some Sequence<Checkpoint> { heads().lazy.map(\.checkpoint) }

    /// A checkpoint without its id index, and the location of that index if it has one.
    struct Head {
        let checkpoint: Checkpoint
        let idIndex: StoredIDIndex?
    }

    /// As `usable()`, with the locations of the id indexes.
    func heads() -> some Sequence<Head> { claims().heads() }

    /// The positions that the checkpoints and `lock` name, as of now. Three small reads; a slot's content is read
    /// only if its header contradicts the end of the log.
    func claims() -> EndClaims {
        // First: a writer that opens a copy sets such checkpoints aside before it changes `lock`.
        let lock = CopiedFolder.marker(directory, fileSystem)
        let slots =
            isFolder ? LogDirectory.checkpointSlots.compactMap { header(of: $0) } : []
        let order = slots.sorted {
            ($0.header.position, $0.header.createdAt) > ($1.header.position, $1.header.createdAt)
        }
        return EndClaims(
            directory: directory, lock: lock.flatMap { $0.isShared ? nil : $0.content },
            isCopy: lock?.isCopy ?? false, slots: order)
    }

    /// Reads a slot's header, whose digest has not been checked.
    private func header(
        of slot: String
    ) -> (slot: String, file: any File, header: Checkpoint.Header)? {
        guard let file = try? fileSystem.open(folder + "/" + slot, .read),
            let bytes = try? file.read(at: 0, count: Checkpoint.headerBytes),
            let header = Checkpoint.header(bytes.span.bytes)
        else { return nil }
        return (slot, file, header)
    }

    /// Reads and checks the checkpoint without its id index; nil if it is damaged.
    static func head(of file: any File, _ header: Checkpoint.Header) -> Head? {
        guard let bytes = headBytes(of: file, header),
            let checkpoint = try? Checkpoint(head: bytes.span.bytes)
        else { return nil }
        return Head(
            checkpoint: checkpoint,
            idIndex: checkpoint.live.map { StoredIDIndex($0, in: file, at: header.headBytes) })
    }

    /// Reads the checkpoint without its id index; nil if the file is too short.
    private static func headBytes(of file: any File, _ header: Checkpoint.Header) -> [UInt8]? {
        guard header.headBytes <= FormatLimit.checkpointPlaintextBytesMax,
            let size = try? file.size(), header.headBytes <= size
        else { return nil }
        return try? file.read(at: 0, count: header.headBytes)
    }

    /// Stores a checkpoint in the slot that is empty, damaged or older. Durable on return. A power cut at
    /// any moment leaves the other slot intact, and this one with its old or its new content.
    ///
    /// - Returns: the name of the slot.
    /// - Throws: `LogError`; `tooLarge` if the states exceed the size of a checkpoint.
    @discardableResult
    package func write(_ checkpoint: Checkpoint) throws(LogError) -> String {
        let (slot, kept) = slotToReplace()
        var checkpoint = checkpoint
        // Of two checkpoints with one position the later must win, even if the clock has stopped or been
        // set back.
        if let kept, kept.position == checkpoint.position {
            let earliest = min(kept.createdAt, .max - 1) + 1
            checkpoint.createdAt = max(checkpoint.createdAt, earliest)
        }
        let bytes: [UInt8]
        do throws(FormatError) {
            bytes = try checkpoint.encoded()
        } catch { throw LogError(.tooLarge, path: folder, error.detail) }
        try storage { () throws(FileError) in
            try fileSystem.createDirectoryIfMissing(folder)
            try fileSystem.syncDirectory(directory)
        }
        let path = folder + "/" + LogDirectory.newCheckpoint
        do throws(FileError) {
            let file = try fileSystem.open(path, .createIfMissing)
            try file.truncate(to: 0)
            try file.write(bytes, at: 0)
            try file.sync()
            try fileSystem.rename(path, to: folder + "/" + slot)
            try fileSystem.syncDirectory(folder)
        } catch {
            try? fileSystem.remove(path)
            throw LogError(error)
        }
        return slot
    }

    /// The slot that is empty, damaged or older, and the header of the checkpoint in the other one.
    private func slotToReplace() -> (slot: String, kept: Checkpoint.Header?) {
        let slots = LogDirectory.checkpointSlots.map {
            (slot: $0, header: intactHeader(of: $0))
        }
        func age(_ header: Checkpoint.Header?) -> (Position, Int64) {
            header.map { ($0.position, $0.createdAt) } ?? (.zero, .min)
        }
        let isFirst = age(slots[0].header) <= age(slots[1].header)
        return (slots[isFirst ? 0 : 1].slot, slots[isFirst ? 1 : 0].header)
    }

    /// The header of the checkpoint in a slot if the digest of its head is right; its content is not decoded.
    private func intactHeader(of slot: String) -> Checkpoint.Header? {
        guard let (_, file, header) = header(of: slot),
            let head = Self.headBytes(of: file, header),
            (try? Checkpoint.checkDigest(ofHead: head.span.bytes)) != nil
        else { return nil }
        return header
    }
}

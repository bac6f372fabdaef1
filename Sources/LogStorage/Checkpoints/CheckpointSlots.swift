// Where checkpoints live: two files that take turns, so that there is a whole one at any moment.
// Spec/format/checkpoint.md.

import LogFormat

/// The two stored checkpoints of a log.
package struct CheckpointSlots: Sendable {
    private let directory: String
    private let fileSystem: any FileSystem

    /// Creates access to the checkpoints of the log in a folder. Nothing is opened yet.
    package init(_ directory: String, fileSystem: any FileSystem) {
        self.directory = directory
        self.fileSystem = fileSystem
    }

    private var folder: String { directory + "/" + LogDirectory.checkpoints }

    /// True if `checkpoints` is a folder: a reader does not follow a link.
    var isFolder: Bool {
        do throws(FileError) {
            _ = try fileSystem.open(folder, .read)
            return false
        } catch { return error.code == .wrongKind }
    }

    /// What a slot holds.
    package enum Content: Sendable {
        case checkpoint(Checkpoint)
        /// It cannot be used; why.
        case bad(String)
    }

    /// The slots that hold something, by name.
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
                return .bad("the file has \(size) bytes, more than a checkpoint")
            }
            let bytes = try file.read(at: 0, count: size)
            return .checkpoint(try Checkpoint(bytes.span.bytes))
        } catch let error as FileError where error.code == .notFound {
            return nil
        } catch {
            return .bad("\(error)")
        }
    }

    /// The checkpoints that can be used, without their id indexes, the newest first, each read when
    /// it is asked for. Whatever is wrong with one, it is left out.
    package func usable() -> some Sequence<Checkpoint> { heads().lazy.map(\.checkpoint) }

    /// A checkpoint without its id index, and where that is if it has one.
    struct Head {
        let checkpoint: Checkpoint
        let idIndex: StoredIDIndex?
    }

    /// As `usable()`, with the places of the id indexes.
    func heads() -> some Sequence<Head> { claims().heads() }

    /// What the checkpoints stored now say of the log's end. Two small reads; a slot's content is
    /// read only where its header contradicts the end that is found.
    func claims() -> EndClaims {
        let slots =
            isFolder ? LogDirectory.checkpointSlots.compactMap { header(of: $0) } : []
        let order = slots.sorted {
            ($0.header.position, $0.header.createdAt) > ($1.header.position, $1.header.createdAt)
        }
        return EndClaims(directory: directory, slots: order)
    }

    /// What a slot's header says; whether that can be believed is not known yet.
    private func header(of slot: String) -> (file: any File, header: Checkpoint.Header)? {
        guard let file = try? fileSystem.open(folder + "/" + slot, .read),
            let bytes = try? file.read(at: 0, count: Checkpoint.headerBytes),
            let header = Checkpoint.header(bytes.span.bytes)
        else { return nil }
        return (file, header)
    }

    static func head(of file: any File, _ header: Checkpoint.Header) -> Head? {
        guard header.headBytes <= FormatLimit.checkpointPlaintextBytesMax,
            let size = try? file.size(), header.headBytes <= size,
            let bytes = try? file.read(at: 0, count: header.headBytes),
            let checkpoint = try? Checkpoint(head: bytes.span.bytes)
        else { return nil }
        return Head(
            checkpoint: checkpoint,
            idIndex: checkpoint.live.map { StoredIDIndex($0, in: file, at: header.headBytes) })
    }

    /// Stores a checkpoint in the slot that is empty, bad or older. Durable on return; a cut at any
    /// moment leaves the other slot and either content of this one.
    ///
    /// - Returns: the slot.
    /// - Throws: `LogError`; `tooLarge` for states that are more than a checkpoint holds.
    @discardableResult
    package func write(_ checkpoint: Checkpoint) throws(LogError) -> String {
        let (slot, kept) = slotToReplace()
        var checkpoint = checkpoint
        // Of two with one position the later counts, also if the clock stands or has gone back.
        if let kept, kept.position == checkpoint.position {
            let least = min(kept.createdAt, .max - 1) + 1
            checkpoint.createdAt = max(checkpoint.createdAt, least)
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

    /// The slot that is empty, bad or older, and what the other one holds.
    private func slotToReplace() -> (slot: String, kept: Checkpoint?) {
        let slots = LogDirectory.checkpointSlots.map { slot -> (slot: String, held: Checkpoint?) in
            if case .checkpoint(let found)? = content(of: slot) {
                (slot, found)
            } else {
                (slot, nil)
            }
        }
        func age(_ held: Checkpoint?) -> (Position, Int64) {
            held.map { ($0.position, $0.createdAt) } ?? (.zero, .min)
        }
        let isFirst = age(slots[0].held) <= age(slots[1].held)
        return (slots[isFirst ? 0 : 1].slot, slots[isFirst ? 1 : 0].held)
    }
}

// Where checkpoints live: two files that take turns, so that there is a whole one at any moment.
// Spec/checkpoint.md.

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

    /// What a slot holds.
    package enum Content: Sendable {
        case checkpoint(Checkpoint)
        /// It cannot be used; why.
        case bad(String)
    }

    /// The slots that hold something, by name.
    package func contents() -> [(slot: String, content: Content)] {
        LogDirectory.checkpointSlots.compactMap { slot in
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

    /// The checkpoints that can be used, the newest first. Whatever is wrong with one, it is left
    /// out.
    package func usable() -> [Checkpoint] {
        contents().compactMap {
            if case .checkpoint(let checkpoint) = $0.content { checkpoint } else { nil }
        }
        .sorted { ($0.position, $0.createdAt) > ($1.position, $1.createdAt) }
    }

    /// Stores a checkpoint in the slot that is empty, bad or older. Durable on return; a cut at any
    /// moment leaves the other slot and either content of this one.
    ///
    /// - Throws: `LogError`; `tooLarge` for states that are more than a checkpoint holds.
    package func write(_ checkpoint: Checkpoint) throws(LogError) {
        let bytes: [UInt8]
        do throws(FormatError) {
            bytes = try checkpoint.encoded()
        } catch { throw LogError(.tooLarge, path: folder, error.detail) }
        let slot = slotToReplace()
        do throws(FileError) {
            try fileSystem.createDirectory(folder)
            try fileSystem.syncDirectory(directory)
        } catch let error where error.code == .exists {
        } catch { throw LogError(error) }
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
    }

    private func slotToReplace() -> String {
        var oldest: (slot: String, position: Position, createdAt: Int64)?
        for slot in LogDirectory.checkpointSlots {
            guard case .checkpoint(let found)? = content(of: slot) else { return slot }
            if let known = oldest,
                (known.position, known.createdAt) <= (found.position, found.createdAt)
            {
                continue
            }
            oldest = (slot, found.position, found.createdAt)
        }
        return oldest?.slot ?? LogDirectory.checkpointSlots[0]
    }
}

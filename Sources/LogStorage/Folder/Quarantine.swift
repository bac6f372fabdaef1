// Keeps the bytes that recovery and repair remove from a log, torn tails and whole files, instead of
// deleting them. Spec/format/recovery.md, REC-4; Spec/format/repair.md, REP-3.

import LogFormat

/// The folder `quarantine/` of a log.
struct Quarantine {
    private let directory: String
    private let fileSystem: any FileSystem

    private static let portionBytes = 1024 * 1024

    init(_ directory: String, _ fileSystem: any FileSystem) {
        self.directory = directory
        self.fileSystem = fileSystem
    }

    private var folder: String { directory + "/" + LogDirectory.quarantine }

    /// Stores bytes as `<stem>.<suffix>`, or as `<stem>.1.<suffix>` and so on if the name exists. Durable on
    /// return.
    ///
    /// - Returns: the path of the copy.
    func keep(_ bytes: [UInt8], _ stem: String, _ suffix: String) throws(LogError) -> String {
        try drawing { () throws(FileError) in
            try fill(stem, suffix) { (file) throws(FileError) in
                try file.write(bytes, at: 0)
            }
        }
    }

    /// Stores a copy of a whole file, named as by `keep(_:_:_:)`. Reuses an existing copy with the same
    /// bytes, as an interrupted repair leaves one. Durable on return.
    ///
    /// - Returns: the path of the copy.
    /// - Complexity: O(bytes); memory for 1 MiB.
    func keep(
        copyOf path: String, _ stem: String, _ suffix: String
    ) throws(LogError) -> String {
        try drawing { () throws(FileError) in
            let source = try fileSystem.open(path, .read)
            // By name and not by a list of the folder, which a repair of many files makes long.
            var number = 0
            while true {
                let path = folder + "/" + Self.name(stem, number, suffix)
                number += 1
                let known: any File
                do throws(FileError) {
                    known = try fileSystem.open(path, .readWrite)
                } catch let error where error.code == .wrongKind || error.code == .symbolicLink {
                    continue
                } catch { break }
                guard try Self.isSame(source, known) else { continue }
                // The interrupted repair may have been killed before its sync.
                try known.sync()
                try fileSystem.syncDirectory(folder)
                return path
            }
            return try fill(stem, suffix) { (file) throws(FileError) in
                try source.copy(source.size(), to: file)
            }
        }
    }

    /// Moves an entry that cannot be opened, such as a folder instead of a file, into the quarantine.
    /// Durable on return.
    ///
    /// - Returns: its new path.
    func move(_ path: String, _ stem: String, _ suffix: String) throws(LogError) -> String {
        // A wrong entry named `quarantine` is itself renamed within the log's folder.
        let target = path == folder ? directory : folder
        if target == folder { try storage(prepare) }
        return try storage { () throws(FileError) in
            let taken = try fileSystem.list(target)
            var number = 0
            while taken.contains(Self.name(stem, number, suffix)) { number += 1 }
            let target = target + "/" + Self.name(stem, number, suffix)
            try fileSystem.rename(path, to: target)
            if path != folder { try fileSystem.syncDirectory(folder) }
            try fileSystem.syncDirectory(directory)
            return target
        }
    }

    private func prepare() throws(FileError) {
        try fileSystem.createDirectoryIfMissing(folder)
        try fileSystem.syncDirectory(directory)
    }

    /// Stores a copy, on a full disk with the space of the reserve. A folder that stays empty is removed.
    private func drawing(_ store: () throws(FileError) -> String) throws(LogError) -> String {
        try ReserveFile(directory, fileSystem).drawing { () throws(LogError) in
            do throws(FileError) {
                try prepare()
                return try store()
            } catch {
                if error.code == .noSpace { try? fileSystem.removeDirectory(folder) }
                throw LogError(error)
            }
        }
    }

    private func create(
        _ stem: String, _ suffix: String
    ) throws(FileError) -> (file: any File, path: String) {
        var number = 0
        while true {
            let path = folder + "/" + Self.name(stem, number, suffix)
            do throws(FileError) {
                return (try fileSystem.open(path, .createNew), path)
            } catch let error where error.code == .exists {
                number += 1
            }
        }
    }

    /// Creates and writes a file; durable on return. Removes it if writing fails, as on a full disk.
    private func fill(
        _ stem: String, _ suffix: String, _ write: (any File) throws(FileError) -> Void
    ) throws(FileError) -> String {
        let (file, path) = try create(stem, suffix)
        do throws(FileError) {
            try write(file)
            try file.sync()
            try fileSystem.syncDirectory(folder)
            return path
        } catch {
            try? fileSystem.remove(path)
            throw error
        }
    }

    private static func name(_ stem: String, _ number: Int, _ suffix: String) -> String {
        number == 0 ? "\(stem).\(suffix)" : "\(stem).\(number).\(suffix)"
    }

    private static func isSame(_ one: any File, _ other: any File) throws(FileError) -> Bool {
        guard try one.size() == other.size() else { return false }
        var offset = 0
        while true {
            let bytes = try one.read(at: offset, count: portionBytes)
            guard try bytes == other.read(at: offset, count: portionBytes) else { return false }
            guard !bytes.isEmpty else { return true }
            offset += bytes.count
        }
    }
}

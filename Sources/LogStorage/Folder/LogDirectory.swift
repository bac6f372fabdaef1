// What lies in a log's folder. Spec/format/segment.md, SEG-1.

import LogFormat

/// The folder of a log: names only.
public enum LogDirectory {
    package static let lock = "lock"
    package static let checkpoints = "checkpoints"
    /// The two places of a checkpoint, in the folder of that name.
    package static let checkpointSlots = ["a", "b"]
    package static let newCheckpoint = "new"
    package static let quarantine = "quarantine"
    package static let rewriteJournal = "rewrite"
    package static let newRewriteJournal = "rewrite.new"
    /// A compacted segment that has not got its name yet.
    package static let newSegment = "compaction.new"
    package static let reserve = "reserve"
    /// What is too big for an event; of no concern to the log itself.
    public static let files = "files"
    /// The log is being erased.
    package static let erasing = "erasing"
    /// The log is being erased, and its secrets have to go first.
    package static let erasingWithSecrets = "erasing-with-secrets"

    /// How the names of files end that repair writes before it puts them in their place.
    package static let repairSuffix = ".repair"

    /// What a log may begin with. A marker of an erasure without a log is not of a log.
    private static let known: Set<String> = [
        lock, checkpoints, quarantine, rewriteJournal, newRewriteJournal, newSegment, reserve,
        files,
    ]

    /// The folder that holds a file or folder; `.` for a bare name.
    static func parent(of path: String) -> String {
        let trimmed = path.count > 1 && path.hasSuffix("/") ? String(path.dropLast()) : path
        guard let slash = trimmed.lastIndex(of: "/") else { return "." }
        return slash == trimmed.startIndex ? "/" : String(trimmed[..<slash])
    }

    /// True for `<segment name>[.<number>].repair`.
    static func isRepairs(_ name: String) -> Bool {
        guard name.hasSuffix(repairSuffix) else { return false }
        var stem = name.dropLast(repairSuffix.count)
        if let dot = stem.lastIndex(of: "."), Int(stem[stem.index(after: dot)...]) != nil {
            stem = stem[..<dot]
        }
        return SegmentName.base(String(stem)) != nil
    }

    /// True if an erasure of a log was begun in a folder with these names. A file that is only called
    /// like the marker is none: a log has a lock or segments beside it.
    static func isErased(_ names: [String]) -> Bool {
        (names.contains(erasing) || names.contains(erasingWithSecrets))
            && names.contains { $0 == lock || SegmentName.base($0) != nil }
    }

    private enum Kind { case missing, file, folder, link, other }

    /// Entries with a name of the log's and another kind than the log gives it: a folder or a device
    /// in place of a file, or anything else in place of a folder. A writer can neither use nor remove
    /// them, and a reader must not follow a link.
    static func misplaced(
        in path: String, _ fileSystem: any FileSystem
    ) throws(LogError) -> [(name: String, reason: String)] {
        func kind(of name: String) throws(LogError) -> Kind {
            do throws(FileError) {
                _ = try fileSystem.open(path + "/" + name, .read)
                return .file
            } catch {
                switch error.code {
                case .notFound: return .missing
                case .symbolicLink: return .link
                case .wrongKind:
                    return (try? fileSystem.list(path + "/" + name)) == nil ? .other : .folder
                default: throw LogError(error)
                }
            }
        }
        var found: [(name: String, reason: String)] = []
        for name in [quarantine, checkpoints] {
            let kind = try kind(of: name)
            if kind != .folder, kind != .missing { found.append((name, "it is not a folder")) }
        }
        guard !found.contains(where: { $0.name == checkpoints }) else { return found }
        // A writer removes a link with one of these names, and not its target.
        for name in [newRewriteJournal, newSegment, checkpoints + "/" + newCheckpoint] {
            let kind = try kind(of: name)
            if kind == .folder || kind == .other {
                found.append((name, "it is not a regular file"))
            }
        }
        return found
    }

    /// The names of a log's segments, in order.
    ///
    /// - Returns: an empty list for a folder that is empty or holds only what a log begins with.
    /// - Throws: `noSuchLog` where there is no folder or what is there is being erased, `notALog`
    ///   where the folder holds other things and no segment.
    package static func segments(
        of path: String, _ fileSystem: any FileSystem
    ) throws(LogError) -> [String] {
        let names: [String]
        do throws(FileError) {
            names = try fileSystem.list(path)
        } catch {
            switch error.code {
            case .notFound: throw LogError(.noSuchLog, path: path, "there is no such folder")
            case .wrongKind: throw LogError(.notALog, path: path, "it is a file, not a folder")
            default: throw LogError(error)
            }
        }
        guard !isErased(names) else {
            throw LogError(
                .noSuchLog, path: path,
                "the log was to be erased, and not all of it is gone. Opening a store there ends it"
            )
        }
        let segments = names.filter { SegmentName.base($0) != nil }.sorted()
        if segments.isEmpty, let other = names.sorted().first(where: { !known.contains($0) }) {
            throw LogError(
                .notALog, path: path,
                "the folder holds other things (\(other)) and no log. Name an empty or new folder")
        }
        return segments
    }
}

// The names of the files in a log's folder. Spec/format/segment.md, SEG-1.

import LogFormat

/// The folder of a log: names only.
public enum LogDirectory {
    package static let lock = "lock"
    package static let checkpoints = "checkpoints"
    /// The names of the two checkpoint files in `checkpoints`.
    package static let checkpointSlots = ["a", "b"]
    package static let newCheckpoint = "new"
    package static let quarantine = "quarantine"
    package static let rewriteJournal = "rewrite"
    package static let newRewriteJournal = "rewrite.new"
    /// A compacted segment before its rename to the segment's name.
    package static let newSegment = "compaction.new"
    package static let reserve = "reserve"
    /// The rules of the app's own event types. The log itself does not read it.
    package static let rules = "rules"
    package static let newRules = "rules.new"
    /// The folder for data that is too large for an event. The log itself does not read it.
    public static let files = "files"
    /// The prefix of the names of files in that folder that are not complete.
    public static let unfinishedFilePrefix = "new-"
    /// The folder of the spools of companions. The log itself does not read it.
    package static let companions = "companions"
    /// The file whose lock is a request for the log.
    package static let handover = "handover"
    /// The marker of an erasure.
    package static let erasing = "erasing"
    /// The marker of an erasure whose secrets must be deleted first.
    package static let erasingWithSecrets = "erasing-with-secrets"

    /// The suffix of the files that repair writes before it renames them.
    package static let repairSuffix = ".repair"

    /// The names that a folder without segments may contain. An erasure marker alone is no part of a log.
    private static let ownNames: Set<String> = [
        lock, checkpoints, quarantine, rewriteJournal, newRewriteJournal, newSegment, reserve,
        files, rules, newRules, companions, handover,
    ]

    /// True for the names that a log gives to entries of its folder.
    package static func isOwn(_ name: String) -> Bool {
        ownNames.contains(name) || SegmentName.base(name) != nil || isRepairFile(name)
            || name == erasing || name == erasingWithSecrets
    }

    /// The parent folder of a path; `.` for a bare name.
    static func parent(of path: String) -> String {
        let trimmed = path.count > 1 && path.hasSuffix("/") ? String(path.dropLast()) : path
        guard let slash = trimmed.lastSlash else { return "." }
        return slash == trimmed.startIndex ? "/" : String(trimmed[..<slash])
    }

    /// Checks, by their paths, that a folder is not the log's and not in it.
    ///
    /// - Throws: `LogError` (`io`).
    static func requireOutside(_ directory: String, _ target: String) throws(LogError) {
        guard !target.isPath(in: directory) else { throw isInside(target) }
    }

    /// The error for a target in the log's folder.
    package static func isInside(_ target: String) -> LogError {
        LogError(
            .io, path: target, "the copy would be in the log's folder; choose another path")
    }

    /// The error for a target that exists.
    static func isTaken(_ target: String) -> LogError {
        LogError(.io, path: target, "the file or folder exists; choose a path that does not")
    }

    /// The error for a target whose parent does not exist.
    static func lacksParent(_ target: String) -> LogError {
        LogError(
            .io, path: parent(of: target),
            "the folder does not exist; create it, or choose another path")
    }

    /// True for `<segment name>[.<number>].repair`.
    static func isRepairFile(_ name: String) -> Bool {
        guard name.hasSuffix(repairSuffix) else { return false }
        var stem = name.dropLast(repairSuffix.count)
        if let dot = stem.lastIndex(of: "."), Int(stem[stem.index(after: dot)...]) != nil {
            stem = stem[..<dot]
        }
        return SegmentName.base(String(stem)) != nil
    }

    /// True if a folder with these names contains a log whose erasure has begun. A marker without a lock or
    /// segments beside it does not count: it may be a file of another program.
    static func isErased(_ names: [String]) -> Bool {
        (names.contains(erasing) || names.contains(erasingWithSecrets))
            && names.contains { $0 == lock || SegmentName.base($0) != nil }
    }

    private enum Kind { case missing, file, folder, link, other }

    /// The entries that have a name of the log's files and the wrong kind: a folder or a device instead of
    /// a file, or something else instead of a folder. A writer can neither use nor remove them, and a
    /// reader must not follow a link.
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
        // A link with one of these names is harmless: the writer removes the link and not its target.
        for name in [newRewriteJournal, newSegment, checkpoints + "/" + newCheckpoint] {
            let kind = try kind(of: name)
            if kind == .folder || kind == .other {
                found.append((name, "it is not a regular file"))
            }
        }
        return found
    }

    /// Lists the names of a log's segments, in order.
    ///
    /// - Returns: an empty list for a folder that has only files of a log and no segment yet.
    /// - Throws: `noSuchLog` if there is no folder or its log is being erased, `notALog` if the folder has
    ///   other files and no segment.
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
                "the erasure of the log is unfinished; open a store there to finish it")
        }
        let segments = names.filter { SegmentName.base($0) != nil }.sorted()
        if segments.isEmpty, let other = names.sorted().first(where: { !ownNames.contains($0) }) {
            throw LogError(
                .notALog, path: path,
                "the folder has other files (\(other)) and no log; choose an empty or new folder")
        }
        return segments
    }
}

// What repair knows of one file of a log: whether it is sound, and if not, what is left of it. Made by
// reading only, before RepairPlan judges all files together. Spec/format/repair.md, REP-1.

import LogFormat

/// One segment file, or one that an interrupted repair left.
struct SurveyedFile {
    enum State {
        /// Sealed, and all of it is right. Only in the last segment may zeros follow the footer: a
        /// kill can have kept the room from being truncated.
        case sealed(through: Position, hasRoom: Bool)
        /// Can be appended to, after mending if need be (R3 to R5).
        case appendable(next: Position)
        /// Had only begun to exist (R1).
        case unfinished
        case damaged(SegmentSalvage)
        /// No regular file.
        case unreadable
    }

    var name: String
    var bytes: Int
    /// The header, one flipped bit mended.
    var header: SegmentHeader?
    var state: State
    /// What is wrong with the file, if anything is.
    var reason = ""

    /// The position in the file's name; nil for what an interrupted repair left.
    var named: Position? { SegmentName.base(name) }

    /// Where the file belongs by what is in it.
    var base: Position? {
        if let header { return header.base }
        guard case .damaged(let salvage) = state, let named else { return named }
        guard let first = salvage.pieces.first?.positions.lowerBound else { return nil }
        return min(first, named)
    }

    var lineCount: Int {
        guard case .damaged(let salvage) = state else { return .max }
        return salvage.lineCount
    }

    /// Whether nothing is missing in the file, wherever it stands.
    var isWhole: Bool {
        guard case .damaged(let salvage) = state else { return true }
        return salvage.damage == nil && salvage.footer != nil
    }

    /// Reads a file.
    ///
    /// - Throws: `newerVersion`, `unknownFeature`, `io`, `readOnly`. Damage is no error.
    /// - Complexity: O(bytes).
    static func read(
        _ name: String, in directory: String, _ journal: RewriteJournal?,
        _ fileSystem: any FileSystem
    ) throws(LogError) -> SurveyedFile {
        let path = directory + "/" + name
        let plain: any File
        do throws(FileError) {
            plain = try fileSystem.open(path, .read)
        } catch let error where error.code == .wrongKind || error.code == .symbolicLink {
            return SurveyedFile(name: name, bytes: 0, state: .unreadable, reason: error.reason)
        } catch { throw LogError(error) }
        let file = try journal?.overlaid(on: plain, name: name) ?? plain
        let (bytes, start) = try storage { () throws(FileError) in
            (try file.size(), try file.read(at: 0, count: SegmentHeader.encodedBytes))
        }
        var found = SurveyedFile(name: name, bytes: bytes, state: .unreadable)
        do throws(FormatError) {
            found.header = try SegmentHeader(start.span.bytes)
        } catch {
            switch error.code {
            case .newerVersion, .unknownFeature:
                throw LogError(error, path: path, offset: 0)
            default: found.header = SegmentHeader.mended(start.span.bytes)
            }
        }
        do throws(LogError) {
            found.state = try soundState(name, file, in: directory, fileSystem)
        } catch {
            guard error.code == .corrupt || error.code == .notALog else { throw error }
            found.reason = Self.words(error)
            let base = found.header?.base ?? Position(1)
            let salvage = try storage { () throws(FileError) in
                try SegmentSalvage(file, from: base)
            }
            found.state = .damaged(salvage)
        }
        return found
    }

    /// Place and fault, without what the error says to whoever opens the log.
    private static func words(_ error: LogError) -> String {
        var text = error.offset.map { "byte \($0): \(error.detail)" } ?? error.detail
        if let end = text.firstRange(of: ". Nothing was changed") {
            text.removeSubrange(end.lowerBound...)
        }
        return text
    }

    /// The state of a file that is right.
    ///
    /// - Throws: `corrupt`, `notALog` where it is not.
    private static func soundState(
        _ name: String, _ file: any File, in directory: String, _ fileSystem: any FileSystem
    ) throws(LogError) -> State {
        let path = directory + "/" + name
        if let segment = try? SealedSegment(name, in: directory, fileSystem) {
            try check(segment, in: directory, fileSystem)
            return .sealed(through: segment.footer.coveredThrough, hasRoom: false)
        }
        let recovery = Recovery(directory: directory, fileSystem: fileSystem)
        switch try recovery.judge(name, file: file) {
        case .unfinished: return .unfinished
        case .sealed(let footer, let footerAt, _):
            // There is room behind the footer, or only the rewrite journal has it whole.
            let segment = try SealedSegment(
                last: path, file: file, footer: footer, footerAt: footerAt)
            try check(segment, in: directory, fileSystem)
            return .sealed(through: footer.coveredThrough, hasRoom: true)
        case .closed(let live), .live(let live), .torn(let live, _):
            return .appendable(next: live.contents.next)
        }
    }

    private static func check(
        _ segment: SealedSegment, in directory: String, _ fileSystem: any FileSystem
    ) throws(LogError) {
        let findings: [Finding]
        do {
            findings = try LogVerifier(directory, fileSystem: fileSystem).findings(in: segment)
        } catch let error as LogError {
            throw error
        } catch { throw LogError(.io, path: segment.path, "\(error)") }
        guard let first = findings.first else { return }
        throw LogError(.corrupt, path: segment.path, offset: first.offset, first.detail)
    }
}

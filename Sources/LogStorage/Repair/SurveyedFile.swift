// Surveys one file of a log for repair: whether it is sound, and if not, which frames are intact. Only reads,
// before RepairPlan plans with all files together. Spec/format/repair.md, REP-1.

import LogFormat

/// A segment file, or a file of an interrupted repair.
struct SurveyedFile {
    enum State {
        /// Sealed and intact. Only in the last segment may zeros follow the footer: a kill can have
        /// prevented the truncation of the preallocated space.
        case sealed(through: Position, hasTrailingZeros: Bool)
        /// Can be appended to, after recovery if needed (R3 to R5).
        case appendable(next: Position)
        /// A segment whose creation was interrupted (R1).
        case unfinished
        case damaged(SegmentSalvage)
        /// No regular file.
        case unreadable
    }

    var name: String
    var bytes: Int
    /// The header, with a single flipped bit corrected.
    var header: SegmentHeader?
    var state: State
    /// The number of lines in a sound file.
    var events = 0
    /// The description of the damage; empty for a sound file.
    var reason = ""

    /// The position in the file's name; nil for a file of an interrupted repair.
    var named: Position? { SegmentName.base(name) }

    /// The first position according to the file's content.
    var base: Position? {
        if let header { return header.base }
        guard case .damaged(let salvage) = state, let named else { return named }
        guard let first = salvage.pieces.first?.positions.lowerBound else { return nil }
        return min(first, named)
    }

    /// True for a folder, a link or a pipe.
    var isUnreadable: Bool {
        if case .unreadable = state { return true }
        return false
    }

    var lineCount: Int {
        guard case .damaged(let salvage) = state else { return .max }
        return salvage.lineCount
    }

    /// True if the file is complete, whatever its name.
    var isWhole: Bool {
        guard case .damaged(let salvage) = state else { return true }
        return salvage.damage == nil && salvage.footer != nil
    }

    /// Reads a file.
    ///
    /// - Throws: `newerVersion`, `unknownFeature`, `io`, `readOnly`. Damage is not thrown.
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
        var survey = SurveyedFile(name: name, bytes: bytes, state: .unreadable)
        do throws(FormatError) {
            survey.header = try SegmentHeader(start.span.bytes)
        } catch {
            switch error.code {
            case .newerVersion, .unknownFeature:
                throw LogError(error, path: path, offset: 0)
            default: survey.header = SegmentHeader.correctingBitFlip(in: start.span.bytes)
            }
        }
        do throws(LogError) {
            (survey.state, survey.events) = try soundState(name, file, in: directory, fileSystem)
        } catch {
            guard error.code == .corrupt || error.code == .notALog else { throw error }
            survey.reason = Self.reason(from: error)
            let base = survey.header?.base ?? Position(1)
            var salvage = try storage { () throws(FileError) in
                try SegmentSalvage(file, from: base)
            }
            survey.state = .damaged(salvage)
            let known = survey.base ?? base
            try storage { () throws(FileError) in
                try salvage.readRemovedPositions(of: file, base: known)
            }
            survey.state = .damaged(salvage)
        }
        return survey
    }

    /// The error's location and description, without the note for a caller that opens the log.
    private static func reason(from error: LogError) -> String {
        var text = error.offset.map { "byte \($0): \(error.detail)" } ?? error.detail
        if let end = text.firstRange(of: ". Nothing was changed") {
            text.removeSubrange(end.lowerBound...)
        }
        return text
    }

    /// The state of a sound file, and the number of its lines.
    ///
    /// - Throws: `corrupt`, `notALog` for a damaged one.
    private static func soundState(
        _ name: String, _ file: any File, in directory: String, _ fileSystem: any FileSystem
    ) throws(LogError) -> (State, events: Int) {
        let path = directory + "/" + name
        if let segment = try? SealedSegment(name, in: directory, fileSystem) {
            try check(segment, in: directory, fileSystem)
            return (
                .sealed(through: segment.footer.coveredThrough, hasTrailingZeros: false),
                Int(clamping: segment.footer.eventCount)
            )
        }
        let recovery = Recovery(directory: directory, fileSystem: fileSystem)
        switch try recovery.classify(name, file: file) {
        case .unfinished: return (.unfinished, 0)
        case .sealed(let footer, let footerAt, _):
            // Preallocated space follows the footer, or only the rewrite journal has the intact footer.
            let segment = try SealedSegment(
                last: path, file: file, footer: footer, footerAt: footerAt)
            try check(segment, in: directory, fileSystem)
            return (
                .sealed(through: footer.coveredThrough, hasTrailingZeros: true),
                Int(clamping: footer.eventCount)
            )
        case .closed(let live), .live(let live), .torn(let live, _):
            return (.appendable(next: live.contents.next), live.contents.eventCount)
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

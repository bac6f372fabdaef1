// Reads a whole log and reports every damage with its location, segment by segment (SegmentVerification).
// Spec/format/recovery.md, REC-7.

import LogFormat

/// The result of verification.
package struct VerificationSummary: Hashable, Sendable {
    package var segments = 0
    package var events = 0
    package var plaintextBytes = 0
    package var last = Position.zero
    package var findings: [Finding] = []
    /// The bytes after the last commit that the next writer will truncate. They are no damage.
    package var tornTail: TornTail?
    /// True if the log was closed in order.
    package var wasClosed = true
    /// The positions that the log had when this folder was copied from it, and that the copy lacks. They are no
    /// damage.
    package var missing: ClosedRange<Position>?
}

/// A verifier of a log, which reads it without its lock.
package struct LogVerifier {
    private let directory: String
    private let fileSystem: any FileSystem

    package init(_ directory: String, fileSystem: any FileSystem = POSIXFileSystem()) {
        self.directory = directory
        self.fileSystem = fileSystem
    }

    /// Reads the whole log.
    ///
    /// - Parameter line: called with every intact line, in order of position, each once; returns a description
    ///   of its problem, or nil.
    /// - Throws: `LogError` if there is no log, or it has a newer version. Damage and files that cannot be read
    ///   are not thrown; they are in the summary.
    /// - Complexity: O(bytes); memory for one frame and one footer.
    package func verify(
        _ line: (LinePrefix, RawSpan) -> String?
    ) throws -> VerificationSummary {
        // Before the segments are read: every position that a checkpoint names now is durable.
        let claims = CheckpointSlots(directory, fileSystem: fileSystem).claims()
        let names = try LogDirectory.segments(of: directory, fileSystem)
        guard !names.isEmpty else {
            throw LogError(.noSuchLog, path: directory, "the folder is empty")
        }
        var summary = VerificationSummary()
        let (bases, log, others) = survey(names)
        summary.findings = others + otherEntries()
        var lastRead = Position.zero
        // A segment may be read more than once, and segments may overlap.
        func check(_ prefix: LinePrefix, _ text: RawSpan) -> String? {
            guard prefix.position > lastRead else { return nil }
            lastRead = prefix.position
            return line(prefix, text)
        }
        var next = Position(1)
        var end: SegmentVerification.End?
        for (number, base) in bases.enumerated() {
            if base != next { summary.findings.append(Self.gap(base, expecting: next)) }
            let following = number + 1 < bases.count ? bases[number + 1] : nil
            var segment = SegmentVerification(base, in: directory, fileSystem, of: log)
            end = try segment.run(before: following, check)
            summary.append(segment)
            next = end?.next ?? following ?? base
        }
        // If damage hides the end of the last segment, the last line that was read counts.
        summary.last = max(Position(next.rawValue - 1), lastRead)
        // The finding of a damaged last segment already names the first missing position.
        guard let base = bases.last, let end else { return summary }
        checkEnd(end, of: SegmentName.of(base), log, claims, &summary)
        return summary
    }

    /// Verifies a sealed segment on its own, without the rest of the log.
    func findings(in segment: SealedSegment) throws -> [Finding] {
        var verification = SegmentVerification(segment.header.base, in: directory, fileSystem)
        try verification.verify(segment) { _, _ in nil }
        return verification.findings
    }

    /// Selects the segments among the entries with their names, and the log that most of them belong to.
    ///
    /// - Returns: the first positions of the files, a header of the log if one is intact, and the findings for
    ///   entries that are no files. What such an entry is named proves nothing.
    private func survey(
        _ names: [String]
    ) -> (bases: [Position], log: SegmentHeader?, findings: [Finding]) {
        var bases: [Position] = []
        var headers: [SegmentHeader] = []
        var findings: [Finding] = []
        for name in names {
            let path = directory + "/" + name
            do throws(FileError) {
                let file = try fileSystem.open(path, .read)
                if let header = try? SealedSegment.header(of: file, path) { headers.append(header) }
            } catch let error where error.code == .wrongKind || error.code == .symbolicLink {
                findings.append(Finding(unreadable: name, error.reason))
                continue
            } catch {}  // Reported when the segment is read.
            if let base = SegmentName.base(name) { bases.append(base) }
        }
        return (bases, SegmentHeader.ofMost(headers), findings)
    }

    /// The findings for other entries that a writer can neither use nor remove.
    private func otherEntries() -> [Finding] {
        var findings: [Finding] = []
        for name in [LogDirectory.lock, LogDirectory.rewriteJournal] {
            do throws(FileError) {
                _ = try fileSystem.open(directory + "/" + name, .read)
            } catch let error where error.code == .notFound {
                continue
            } catch { findings.append(Finding(unreadable: name, error.reason)) }
        }
        do throws(LogError) {
            findings += try LogDirectory.misplaced(in: directory, fileSystem)
                .map { Finding(unreadable: $0.name, $0.reason) }
        } catch {
            let name = String(error.path.dropFirst(directory.count + 1))
            findings.append(Finding(unreadable: name, error.detail))
        }
        return findings
    }

    /// The finding for a segment that begins at `base` and not at `next`.
    private static func gap(_ base: Position, expecting next: Position) -> Finding {
        let gap = SealedSegments.gap(base, next)
        return Finding(
            code: "missing-segment", segment: SegmentName.of(base), offset: nil, positions: gap,
            detail: base > next
                ? "positions \(next) to \(base.rawValue - 1) are in no segment"
                : "the segment overlaps with the previous one",
            lost: base > next ? [gap] : [])
    }

    /// Checks that the log reaches every position that a checkpoint names.
    private func checkEnd(
        _ end: SegmentVerification.End, of name: String, _ log: SegmentHeader?,
        _ claims: EndClaims, _ summary: inout VerificationSummary
    ) {
        summary.missing = claims.missing(from: end.next, of: log?.logID)
        do throws(LogError) {
            try claims.check(
                next: end.next, of: log?.logID, location: (directory + "/" + name, end.offset))
        } catch {
            var finding = Finding(error, in: name, lost: error.positions.map { [$0] } ?? [])
            finding.lostEndIsKnown = false
            summary.findings.append(finding)
            // The torn tail belongs to the missing end, which was synced, and is no unfinished write.
            summary.tornTail = nil
        }
    }
}

extension VerificationSummary {
    /// Appends the result for the next segment.
    fileprivate mutating func append(_ segment: SegmentVerification) {
        segments += 1
        events += segment.events
        plaintextBytes += segment.plaintextBytes
        findings += segment.findings
        tornTail = segment.tornTail
        wasClosed = segment.wasClosed
    }
}

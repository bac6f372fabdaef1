// The files of the log's folder, and their verification.

import DaybookOffline
import EventSourcing
import Foundation
import LogFormat
import LogStorage

extension API {
    /// GET /api/files
    func files() throws -> JSONObjectWriter { try files(segmentMaps()) }

    /// Reads all segments. A folder that is no log has none, and the overview says so. O(bytes).
    func segmentMaps() throws -> [SegmentMap] {
        try ((try? log.folder.segments()) ?? []).map { try SegmentMap($0, in: log.folder) }
    }

    func files(_ maps: [SegmentMap]) throws -> JSONObjectWriter {
        let fileSystem = log.folder.fileSystem
        let problem = log.withState { $0.problem }
        var reply = JSONObjectWriter()
        reply.appendMember("bytes", maps.reduce(0) { $0 + $1.fileBytes })
        reply.appendMember(
            "segments",
            list: maps.enumerated().map { number, map in
                Self.json(map, isLast: number == maps.count - 1, problem)
            })
        reply.appendMember("checkpoints", list: checkpoints(fileSystem))
        reply.appendMember(
            "quarantine", list: listing(of: LogDirectory.quarantine, fileSystem))
        reply.appendMember("companions", list: companions(fileSystem))
        reply.appendMember("others", list: others(fileSystem))
        reply.appendMember("types", list: typeAmounts())
        reply.appendMember("plots", raw: Self.plots(maps).finished())
        return reply
    }

    private static func json(
        _ map: SegmentMap, isLast: Bool, _ problem: LogProblem?
    ) -> JSONObjectWriter {
        let problem = problem?.segment == map.name ? problem : nil
        // At the end of the last segment a write may be unfinished.
        let mayBeTorn = isLast && problem == nil
        let ranges = map.ranges(mayBeTorn: mayBeTorn)
        func bytes(_ kind: String) -> Int {
            ranges.reduce(0) { $0 + ($1.kind == kind ? $1.bytes : 0) }
        }
        return .object {
            $0.appendMember("name", map.name)
            $0.appendMember("base", optional: SegmentName.base(map.name))
            $0.appendMember("last", optional: map.frames.last?.last)
            $0.appendMember("bytes", map.fileBytes)
            $0.appendMember("events", map.frames.reduce(0) { $0 + $1.events })
            $0.appendMember("lineBytes", map.frames.reduce(0) { $0 + $1.lineBytes })
            $0.appendMember("frames", map.frames.count)
            for kind in ["header", "footer", "removedIDs", "preallocated"] {
                $0.appendMember(kind, bytes(kind))
            }
            var damage: [JSONObjectWriter] = []
            switch map.ending {
            case .footer(let footer, _, _):
                $0.appendMember("sealed", true)
                $0.appendMember("compactedThrough", optional: footer.compaction?.through)
            case .damage(let found):
                $0.appendMember("sealed", !isLast)
                if !mayBeTorn { damage.append(Self.json(found, problem)) }
            default: $0.appendMember("sealed", false)
            }
            $0.appendMember("damage", list: damage)
            $0.appendMember("ranges", list: ranges.map(\.json))
        }
    }

    private static func json(_ damage: ScanDamage, _ problem: LogProblem?) -> JSONObjectWriter {
        .object {
            $0.appendMember("offset", problem?.offset ?? damage.offset)
            $0.appendMember("from", optional: problem?.positions?.lowerBound)
            $0.appendMember("to", optional: problem?.positions?.upperBound)
            $0.appendMember("code", "\(damage.error.code)")
            $0.appendMember("detail", problem?.message ?? damage.error.detail)
        }
    }

    // MARK: Other files

    private func checkpoints(_ fileSystem: any FileSystem) -> [JSONObjectWriter] {
        let slots = CheckpointSlots(log.directory, fileSystem: fileSystem)
        // A state of a damaged log may be of events that can no longer be read.
        let readable = log.withState { state in
            state.problem?.code == "damaged" ? state.last : nil
        }
        return slots.contents().map { slot, content in
            .object {
                $0.appendMember("name", slot)
                $0.appendMember(
                    "bytes", bytes(of: "\(LogDirectory.checkpoints)/\(slot)", fileSystem))
                switch content {
                case .checkpoint(let checkpoint):
                    $0.appendMember("position", Int(clamping: checkpoint.position.rawValue))
                    $0.appendMember("time", Self.text(checkpoint.createdAt))
                    $0.appendMember(
                        "views",
                        list: checkpoint.states.map { state in
                            .object {
                                $0.appendMember("name", state.name)
                                $0.appendMember("version", Int(state.version))
                                $0.appendMember("bytes", state.bytes.count)
                            }
                        })
                    $0.appendMember(
                        "problem",
                        optional: readable.flatMap { last in
                            checkpoint.position > last
                                ? "the log can be read through position \(last) only" : nil
                        })
                case .bad(let reason):
                    $0.appendMember("position", optional: nil as Position?)
                    $0.appendMember("time", optional: nil as String?)
                    $0.appendMember("views", list: [])
                    $0.appendMember("problem", reason)
                }
            }
        }
    }

    private func bytes(of name: String, _ fileSystem: any FileSystem) -> Int {
        (try? fileSystem.open(log.directory + "/" + name, .read).size()) ?? 0
    }

    private func listing(
        of folder: String, _ fileSystem: any FileSystem
    ) -> [JSONObjectWriter] {
        let names = (try? fileSystem.list(log.directory + "/" + folder)) ?? []
        return names.sorted().map { name in
            .object {
                $0.appendMember("name", name)
                $0.appendMember("bytes", bytes(of: "\(folder)/\(name)", fileSystem))
            }
        }
    }

    private func companions(_ fileSystem: any FileSystem) -> [JSONObjectWriter] {
        let spools =
            (try? CompanionSpool.all(
                of: log.directory, environment: LogEnvironment(fileSystem: fileSystem))) ?? []
        return spools.map { spool in
            .object {
                $0.appendMember("name", spool.name)
                $0.appendMember("companion", spool.companion)
                $0.appendMember("events", spool.backlog?.events ?? 0)
                $0.appendMember("bytes", spool.backlog?.bytes ?? 0)
                $0.appendMember("state", spool.state.name)
                $0.appendMember("reason", optional: spool.state.reason)
            }
        }
    }

    private func others(_ fileSystem: any FileSystem) -> [JSONObjectWriter] {
        let kinds = [
            LogDirectory.lock: "lock", LogDirectory.reserve: "reserve",
            LogDirectory.rewriteJournal: "journal", LogDirectory.newRewriteJournal: "journal",
            LogDirectory.files: "files", LogDirectory.rules: "rules",
            LogDirectory.handover: "handover",
        ]
        let shown = [
            LogDirectory.checkpoints, LogDirectory.quarantine, LogDirectory.companions,
        ]
        let names = ((try? fileSystem.list(log.directory)) ?? []).sorted()
        return names.filter { SegmentName.base($0) == nil && !shown.contains($0) }.map { name in
            .object {
                $0.appendMember("name", name)
                $0.appendMember("bytes", bytes(of: name, fileSystem))
                $0.appendMember("what", kinds[name] ?? "unknown")
            }
        }
    }

    // MARK: Compaction and plots

    /// GET /api/compaction
    func compaction() throws -> JSONObjectWriter {
        let report = try CompactionPreview(
            log.directory, fileSystem: log.folder.fileSystem, catalogue: OfflineModel.catalogue,
            views: OfflineModel.views + [Outbox.self]
        ).report(
            now: LogEnvironment.systemTime(), summary: Outbox.foldedRecord, progress: { _ in })
        return .object {
            $0.appendMember("bytesFreeable", max(0, report.bytesBefore - report.bytesAfter))
            $0.appendMember("removable", report.removed)
            $0.appendMember(
                "kept",
                list: report.keptBytes.sorted { $0.value > $1.value }.map { reason, bytes in
                    .object {
                        $0.appendMember("reason", reason.rawValue)
                        $0.appendMember("events", report.kept[reason] ?? 0)
                        $0.appendMember("bytes", bytes)
                    }
                })
        }
    }

    private static func plots(_ maps: [SegmentMap]) -> JSONObjectWriter {
        var (written, lines) = (0, 0)
        var amplification: [JSONObjectWriter] = []
        for map in maps {
            for frame in map.frames {
                written += frame.end - frame.offset
                lines += frame.lineBytes
            }
            amplification.append(
                .object {
                    $0.appendMember("position", optional: map.frames.last?.last)
                    $0.appendMember("written", written)
                    $0.appendMember("lines", lines)
                })
        }
        return .object {
            $0.appendMember(
                "segments",
                list: maps.map { map in
                    .object {
                        $0.appendMember("name", map.name)
                        $0.appendMember(
                            "lineBytes", map.frames.reduce(0) { $0 + $1.lineBytes })
                        $0.appendMember(
                            "bytes", map.frames.reduce(0) { $0 + $1.end - $1.offset })
                    }
                })
            $0.appendMember("amplification", list: amplification)
        }
    }

    private static let shownFramesMax = 2_000

    /// GET /api/files/NAME
    func segment(_ name: String) throws -> JSONObjectWriter {
        guard try log.folder.segments().contains(name) else {
            throw APIError.notFound("\(name) is no segment of the log")
        }
        return segment(try SegmentMap(name, in: log.folder))
    }

    func segment(_ map: SegmentMap) -> JSONObjectWriter {
        .object {
            $0.appendMember("name", map.name)
            $0.appendMember(
                "frames",
                list: map.frames.prefix(Self.shownFramesMax).enumerated().map { number, frame in
                    .object {
                        $0.appendMember("number", number)
                        $0.appendMember("offset", frame.offset)
                        $0.appendMember("bytes", frame.end - frame.offset)
                        $0.appendMember("first", Int(clamping: frame.first.rawValue))
                        $0.appendMember("last", Int(clamping: frame.last.rawValue))
                        $0.appendMember("events", frame.events)
                        $0.appendMember("lineBytes", frame.lineBytes)
                        $0.appendMember(
                            "blocks",
                            list: frame.blocks.map { block in
                                .object {
                                    $0.appendMember("offset", block.offset)
                                    $0.appendMember("bytes", block.bytes)
                                    $0.appendMember("events", block.events)
                                    $0.appendMember("lineBytes", block.lineBytes)
                                }
                            })
                    }
                })
        }
    }

    /// GET /api/verify
    func verify() throws -> JSONObjectWriter {
        let verification = try Verification(
            of: log.directory, log.folder.fileSystem, catalogue: OfflineModel.catalogue,
            views: OfflineModel.views + [Outbox.self]
        ) { _ in }
        return .object {
            $0.appendMember(
                "findings",
                list: verification.findings.map { finding in
                    .object {
                        $0.appendMember("segment", finding.segment)
                        $0.appendMember("offset", optional: finding.offset)
                        $0.appendMember("from", optional: finding.positions?.lowerBound)
                        $0.appendMember("to", optional: finding.positions?.upperBound)
                        $0.appendMember("code", finding.code)
                        $0.appendMember("detail", finding.detail)
                        $0.appendMember("cause", optional: finding.cause)
                    }
                })
            var notes = verification.checkpoints.notes
            if let tail = verification.summary.tornTail {
                notes.append(
                    "an unfinished write of \(tail.byteCount) bytes at byte \(tail.offset) of "
                        + "\(tail.segment), which the next writer moves to quarantine")
            }
            $0.appendMember("notes", strings: notes)
            $0.appendMember("events", verification.summary.events)
            $0.appendMember("segments", verification.summary.segments)
        }
    }
}

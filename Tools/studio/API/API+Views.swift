// The views at any position of the log, and what changed between two.

import DaybookOffline
import EventSourcing
import Foundation
import LogFormat
import LogStorage

extension API {
    /// GET /api/views
    func listViews() throws -> JSONObjectWriter {
        let stored = storedStates()
        var reply = JSONObjectWriter()
        reply.appendMember(
            "views",
            list: OfflineModel.views.map { view in
                .object {
                    $0.appendMember("name", view.name)
                    $0.appendMember("kind", "built in")
                    $0.appendMember(
                        "types",
                        raw: view.eventTypes.map {
                            JSONObjectWriter.array($0.sorted().map(JSONObjectWriter.string))
                        } ?? Array("null".utf8))
                }
            }
                + stored.map { state in
                    .object {
                        $0.appendMember("name", state.name)
                        $0.appendMember("kind", "stored")
                        $0.appendMember("types", raw: Array("null".utf8))
                        $0.appendMember("at", Int(clamping: state.position.rawValue))
                    }
                })
        log.withState { state in
            reply.appendMember("first", optional: state.index.positions.first.map { Position($0) })
            reply.appendMember("last", Int(clamping: state.fold.last.rawValue))
            reply.appendMember(
                "compactedThrough", Int(clamping: state.compactedThrough.rawValue))
        }
        return reply
    }

    /// The stored states of the views that only the app knows.
    private func storedStates() -> [StoredState] {
        let known = Set(ViewTimeline.names + [Outbox.name])
        let checkpoint = CheckpointSlots(log.directory, fileSystem: log.folder.fileSystem).usable()
            .first { _ in true }
        return (checkpoint?.states ?? []).filter {
            !$0.isOfStore && !known.contains($0.name)
        }
    }

    /// GET /api/views/NAME
    func view(_ name: String, _ parameters: Parameters) throws -> JSONObjectWriter {
        if !ViewTimeline.names.contains(name),
            let stored = storedStates().first(where: { $0.name == name })
        {
            return Self.reply(stored)
        }
        let began = ContinuousClock.now
        let number = try ViewTimeline.number(of: name)
        let at = try parameters.position("at") ?? log.withState { $0.fold.last }
        let (offset, limit) = try parameters.page()
        let total: Int
        let rows: [ViewRow]
        if let text = parameters.string("text") {
            let search = TextSearch(lowercased: text.utf8.map(\.lowercasedASCII))
            let found = try views.rows(of: number, at: at).filter {
                search.matches($0.json.span.bytes)
            }
            (total, rows) = (found.count, Array(found.dropFirst(offset).prefix(limit)))
        } else {
            (total, rows) = try views.page(of: number, at: at, offset: offset, limit: limit)
        }
        var reply = JSONObjectWriter()
        reply.appendMember("view", name)
        reply.appendMember("kind", "built in")
        reply.appendMember("at", Int(clamping: at.rawValue))
        reply.appendMember("total", total)
        reply.appendMember("offset", offset)
        reply.appendMember("columns", strings: Self.columns(rows))
        reply.appendMember("rows", raw: JSONObjectWriter.array(rows.map(\.json)))
        reply.appendMember("milliseconds", Int((ContinuousClock.now - began) / .milliseconds(1)))
        return reply
    }

    /// The names of the fields: those of the row with most of them in its order, then the others.
    private static func columns(_ rows: [ViewRow]) -> [String] {
        var names = rows.max { $0.fields.count < $1.fields.count }?.fields.map(\.name) ?? []
        for row in rows {
            for field in row.fields where !names.contains(field.name) { names.append(field.name) }
        }
        return names
    }

    private static let shownStateBytes = 256

    private static func reply(_ stored: StoredState) -> JSONObjectWriter {
        .object {
            $0.appendMember("view", stored.name)
            $0.appendMember("kind", "stored")
            $0.appendMember("at", Int(clamping: stored.position.rawValue))
            $0.appendMember("bytes", stored.bytes.count)
            let isJSON = (try? JSONValue(stored.bytes.span.bytes)) != nil
            $0.appendMember("state", raw: isJSON ? stored.bytes : Array("null".utf8))
            $0.appendMember(
                "hex",
                stored.bytes.prefix(shownStateBytes).map {
                    String($0 >> 4, radix: 16) + String($0 & 15, radix: 16)
                }
                .joined(separator: " "))
        }
    }

    // MARK: Marks

    /// GET /api/views/NAME/marks
    func marks(_ name: String, _ parameters: Parameters) throws -> JSONObjectWriter {
        let number = try ViewTimeline.number(of: name)
        let buckets = try parameters.integer("buckets", in: 1...5_000, default: 300)
        return log.withState { state in
            let first = state.index.positions.first ?? 1
            let last = max(first, state.last.rawValue)
            let width = max(1, Double(last - first + 1) / Double(buckets))
            var counts = [Int](repeating: 0, count: buckets)
            for position in state.changes(of: number) where position >= first {
                counts[min(buckets - 1, Int(Double(position - first) / width))] += 1
            }
            return .object {
                $0.appendMember("first", Int(clamping: first))
                $0.appendMember("last", Int(clamping: last))
                $0.appendMember("complete", state.isFolded)
                $0.appendMember("buckets", numbers: counts)
            }
        }
    }

    /// GET /api/views/NAME/step
    func step(_ name: String, _ parameters: Parameters) throws -> JSONObjectWriter {
        let number = try ViewTimeline.number(of: name)
        guard let at = try parameters.position("at") else {
            throw APIError.badRequest("at is missing")
        }
        let direction = parameters.string("to")
        guard direction == "next" || direction == "previous" else {
            throw APIError.badRequest("to must be next or previous")
        }
        let found = try log.withState { state -> UInt64? in
            guard state.isFolded || at <= state.fold.last else { throw APIError.notReady }
            let changes = state.changes(of: number)
            guard direction == "next" else { return changes.last { $0 < at.rawValue } }
            let next = changes.partitioningIndex { $0 > at.rawValue }
            return next < changes.endIndex ? changes[next] : nil
        }
        return .object { $0.appendMember("position", optional: found.map { Position($0) }) }
    }

    // MARK: Changes

    /// GET /api/views/NAME/changes
    func changes(_ name: String, _ parameters: Parameters) throws -> JSONObjectWriter {
        let number = try ViewTimeline.number(of: name)
        guard var from = try parameters.position("from"), var to = try parameters.position("to")
        else { throw APIError.badRequest("from and to are positions") }
        if from > to { (from, to) = (to, from) }
        let (offset, limit) = try parameters.page(default: 50)
        let changes = RowChanges(
            from: try views.rows(of: number, at: from), to: try views.rows(of: number, at: to)
        ).changes
        var reply = JSONObjectWriter()
        reply.appendMember("from", Int(clamping: from.rawValue))
        reply.appendMember("to", Int(clamping: to.rawValue))
        reply.appendMember("added", changes.count { $0.before == nil })
        reply.appendMember("removed", changes.count { $0.after == nil })
        reply.appendMember("changed", changes.count { $0.before != nil && $0.after != nil })
        reply.appendMember("offset", offset)
        let shown = Array(changes.dropFirst(offset).prefix(limit))
        let causes = try ChangeCauses(of: shown, view: number, from: from, to: to, views, log).found
        reply.appendMember(
            "rows",
            list: try shown.map { change in
                var row = JSONObjectWriter()
                row.appendMember(
                    "change",
                    change.before == nil ? "added" : change.after == nil ? "removed" : "changed")
                row.appendMember("key", change.key)
                row.appendMember("before", raw: change.before?.json ?? Array("null".utf8))
                row.appendMember("after", raw: change.after?.json ?? Array("null".utf8))
                row.appendMember("members", strings: change.members)
                let cause = try causes[change.key].flatMap { try event(linkedAt: $0) }
                row.appendMember("cause", raw: cause?.finished() ?? Array("null".utf8))
                return row
            })
        return reply
    }

    private func event(linkedAt position: UInt64) throws -> JSONObjectWriter? {
        var result: JSONObjectWriter?
        try LineReading.forEachLine(at: [position], in: log.folder) { _, line in
            result = link(
                "cause",
                try LogReader.event(line, OfflineModel.catalogue, directory: log.directory))
        }
        return result
    }
}

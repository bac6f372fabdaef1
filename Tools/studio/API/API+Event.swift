// One event: its line, where it is stored, what caused it, what it caused, and its story.

import DaybookOffline
import EventSourcing
import Foundation
import LogFormat
import LogStorage

extension API {
    /// GET /api/events/POSITION
    func event(at position: Position) throws -> JSONObjectWriter {
        guard let line = try line(at: position) else {
            throw APIError.notFound("the log has no event at position \(position)")
        }
        let event = try LogReader.event(
            line.span.bytes, OfflineModel.catalogue, directory: log.directory)
        var reply = JSONObjectWriter()
        reply.appendMember("row", raw: try row(line.span.bytes).finished())
        reply.appendMember("event", raw: line)
        reply.appendMember("eventText", String(decoding: line, as: UTF8.self))
        let place = try SegmentMap.place(of: position, in: log.folder)
        reply.appendMember("place", raw: place?.json.finished() ?? Array("null".utf8))
        reply.appendMember("causes", list: try causes(of: event))
        reply.appendMember("effects", list: try effects(of: event))
        return reply
    }

    private func line(at position: Position) throws -> [UInt8]? {
        var found: [UInt8]?
        try LineReading.forEachLine(at: [position.rawValue], in: log.folder) { _, line in
            found = line.array
        }
        return found
    }

    /// The events that an event names.
    private func causes(of event: Event) throws -> [JSONObjectWriter] {
        let named = [("replaces", "causationid"), ("based on", "baseid")]
        return try named.compactMap { relation, name in
            guard let id = event.content.string(name).flatMap(UUID.init(uuidString:)),
                id != EventDraft.noBase
            else { return nil }
            let position = log.withState { state in
                state.index.ordinal(of: id).map { Position(state.index.positions[$0]) }
            }
            return try link(relation, id, at: position)
        }
    }

    private static let effectsMax = 200

    /// The events that name an event, and the records of the server's verdicts and of decisions on it.
    private func effects(of event: Event) throws -> [JSONObjectWriter] {
        let (dependents, records) = log.withState { state in
            (
                state.index.dependents(of: event.id).map { state.index.positions[$0] },
                event.isOwn && !event.isRecord
                    ? state.index.positions(
                        ofTypes: DiscardedEvents.recordTypes.union([SyncSettled.type])
                    ).filter { $0 > event.position.rawValue } : []
            )
        }
        var links: [JSONObjectWriter] = []
        for position in dependents.prefix(Self.effectsMax) {
            try LineReading.forEachLine(at: [position], in: log.folder) { _, line in
                let other = try LogReader.event(
                    line, OfflineModel.catalogue, directory: log.directory)
                let isCause = other.content.string("causationid") == event.id.text
                links.append(link(isCause ? "replaced by" : "base of", other))
            }
        }
        try LineReading.forEachLine(at: records, in: log.folder) { _, line in
            guard links.count < Self.effectsMax else { return }
            let record = try LogReader.event(
                line, OfflineModel.catalogue, directory: log.directory)
            guard let (relation, detail) = Self.effect(of: record, on: event) else { return }
            links.append(link(relation, record, detail))
        }
        return links
    }

    private static func effect(
        of record: Event, on event: Event
    ) -> (relation: String, detail: String)? {
        let json = record.content.json ?? []
        if let settled = try? SyncSettled(json: json), record.type == SyncSettled.type {
            let position = event.position.rawValue
            if let entry = settled.entries.first(where: { $0.id == event.id }) {
                let message = [entry.code, entry.detail].compactMap { $0 }.joined(separator: ": ")
                return ("verdict", "\(entry.outcome.rawValue) \(message)")
            }
            if settled.applied.contains(where: { $0.contains(position) }) {
                return ("verdict", "applied")
            }
            if settled.duplicate.contains(where: { $0.contains(position) }) {
                return ("verdict", "duplicate")
            }
            return nil
        }
        let isNamed = (try? EventsDiscarded(json: json))?.events.contains { $0.id == event.id }
        if isNamed ?? false {
            return ("decision", record.type == EventsDiscarded.type ? "retracted" : "reinstated")
        }
        return nil
    }

    func link(_ relation: String, _ event: Event, _ detail: String? = nil) -> JSONObjectWriter {
        .object {
            $0.appendMember("relation", relation)
            $0.appendMember("id", event.id.text)
            $0.appendMember("position", Int(clamping: event.position.rawValue))
            $0.appendMember("type", event.type)
            $0.appendMember("subject", optional: event.subject)
            $0.appendMember("time", event.time.description)
            $0.appendMember("detail", optional: detail)
        }
    }

    private func link(
        _ relation: String, _ id: UUID, at position: Position?
    ) throws -> JSONObjectWriter {
        if let position, let line = try line(at: position) {
            return link(
                relation,
                try LogReader.event(
                    line.span.bytes, OfflineModel.catalogue, directory: log.directory))
        }
        return .object {
            $0.appendMember("relation", relation)
            $0.appendMember("id", id.text)
            $0.appendMember("position", optional: nil as Position?)
            $0.appendMember("type", optional: nil as String?)
            $0.appendMember("detail", "the log has no such event, or compaction has removed it")
        }
    }

    // MARK: Finding

    /// GET /api/find
    func find(_ parameters: Parameters) throws -> JSONObjectWriter {
        let id = try parameters.id("id")
        let position = log.withState { state in
            state.index.ordinal(of: id).map { state.index.positions[$0] }
        }
        guard let position else { throw APIError.notFound("no event has the id \(id.text)") }
        return .object { $0.appendMember("position", Int(clamping: position)) }
    }

    /// GET /api/events/POSITION/story
    func story(at position: Position) throws -> JSONObjectWriter {
        guard let line = try line(at: position) else {
            throw APIError.notFound("the log has no event at position \(position)")
        }
        let event = try LogReader.event(
            line.span.bytes, OfflineModel.catalogue, directory: log.directory)
        // Not beyond the last readable event: the log may be damaged there.
        let last = log.withState { Position($0.index.positions.last ?? 0) }
        let result = try EventStory.read(
            of: event.id, in: log.directory, log.folder.fileSystem,
            catalogue: OfflineModel.catalogue,
            through: last, now: LogEnvironment.systemTime())
        guard let story = result?.story else {
            throw APIError.notFound("compaction has removed the event at position \(position)")
        }
        return json(of: story, event)
    }

    /// The story of an event that is in the log.
    func json(of story: EventStory, _ event: Event) -> JSONObjectWriter {
        .object {
            $0.appendMember(
                "steps",
                list: [
                    step(
                        "recorded", event.position, event.time,
                        event.isOwn
                            ? "by this device" : "by another device, and received here")
                ]
                    + story.steps.map {
                        step($0.kind.rawValue, $0.position, $0.time, $0.description)
                    })
            $0.appendMember(
                "status",
                log.withState { $0.status(at: event.position)?.rawValue } ?? "unknown")
            $0.appendMember("detail", story.status.description)
        }
    }

    private func step(
        _ what: String, _ position: Position, _ time: Timestamp?, _ detail: String
    ) -> JSONObjectWriter {
        .object {
            $0.appendMember("position", Int(clamping: position.rawValue))
            $0.appendMember("time", optional: time?.description)
            $0.appendMember("what", what)
            $0.appendMember("detail", detail)
        }
    }
}

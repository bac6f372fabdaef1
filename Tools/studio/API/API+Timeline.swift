// The overview of the log, and the timeline: lists of events, their counts over time, exports.

import DaybookOffline
import EventSourcing
import Foundation
import LogFormat
import LogStorage
import StandardStreams

extension API {
    /// GET /api/log
    func overview() throws -> JSONObjectWriter {
        let files = try? log.folder.reader.files()
        var reply = JSONObjectWriter()
        reply.appendMember("folder", log.directory)
        reply.appendMember("log", optional: files?.logID)
        reply.appendMember("account", optional: files?.account)
        reply.appendMember("writable", isWritable)
        reply.appendMember("isOpen", SegmentMap.isOpenEnded(log.folder))
        reply.appendMember("bytes", files?.bytes ?? 0)
        reply.appendMembers(of: counts())
        return reply
    }

    /// The members of the overview that come from the index. O(n) after a change.
    private func counts() -> [UInt8] {
        // While the log is read for the first time, events are added without a new version.
        let version = log.withState { [$0.version, $0.index.count] }
        if let counts = cachedCounts.withLock({ $0.version == version ? $0.json : nil }) {
            return counts
        }
        let json = log.withState { state in
            let index = state.index
            var reply = JSONObjectWriter()
            reply.appendMember("first", optional: index.positions.first.map { Position($0) })
            reply.appendMember("last", Int(clamping: state.last.rawValue))
            reply.appendMember("events", index.count)
            reply.appendMember("lineBytes", index.totalLineBytes)
            reply.appendMember("oldest", optional: index.times.min().map(Self.text))
            reply.appendMember("newest", optional: index.times.max().map(Self.text))
            reply.appendMember("indexed", index.count)
            reply.appendMember("complete", state.isIndexed)
            reply.appendMember("folded", Int(clamping: state.fold.last.rawValue))
            reply.appendMember("viewsComplete", state.isFolded)
            reply.appendMember("version", state.version)
            reply.appendMember("types", list: counts(index.types, index, bytes: "bytes"))
            reply.appendMember("sources", list: counts(index.sources, index))
            reply.appendMember("accounts", list: counts(index.accounts, index))
            reply.appendMember("statuses", list: statusCounts(state))
            reply.appendMember(
                "compactedThrough", Int(clamping: state.compactedThrough.rawValue))
            reply.appendMember(
                "problem",
                raw: (state.problem ?? state.foldProblem).map { problem in
                    JSONObjectWriter.object {
                        $0.appendMember("code", problem.code)
                        $0.appendMember("message", problem.message)
                        $0.appendMember("remedy", optional: problem.remedy)
                    }.finished()
                } ?? Array("null".utf8))
            return reply.finished()
        }
        cachedCounts.withLock { $0 = (version, json) }
        return json
    }

    /// The names of a column with the number of their events, the most frequent first.
    ///
    /// - Parameter bytes: the name of the member for the bytes of their lines; nil for none.
    private func counts(
        _ column: [UInt32], _ index: EventIndex, bytes: String? = nil
    ) -> [JSONObjectWriter] {
        var events = [Int](repeating: 0, count: index.names.names.count)
        var lineBytes = events
        for (ordinal, number) in column.enumerated() {
            events[Int(number)] += 1
            if bytes != nil { lineBytes[Int(number)] += Int(index.lineBytes[ordinal]) + 1 }
        }
        let numbers = events.indices.dropFirst().filter { events[$0] > 0 }
            .sorted { (events[$1], $0) < (events[$0], $1) }
        return numbers.prefix(1_000).map { number in
            .object {
                $0.appendMember("name", index.names.names[number])
                $0.appendMember("events", events[number])
                if let bytes { $0.appendMember(bytes, lineBytes[number]) }
            }
        }
    }

    /// The events and bytes of lines by type, the most frequent type first.
    func typeAmounts() -> [JSONObjectWriter] {
        log.withState { counts($0.index.types, $0.index, bytes: "lineBytes") }
    }

    private func statusCounts(_ state: FollowedLog.State) -> [JSONObjectWriter] {
        let counts = state.statusCounts()
        return EventStatus.allCases.compactMap { status in
            counts[status].map { count in
                .object {
                    $0.appendMember("name", status.rawValue)
                    $0.appendMember("events", count)
                }
            }
        }
    }

    static func text(_ milliseconds: Int64) -> String {
        Timestamp(milliseconds: milliseconds).description
    }

    private func selection(_ parameters: Parameters) throws -> Selection {
        let order = parameters.string("order") ?? "newest"
        guard order == "newest" || order == "oldest" else {
            throw APIError.badRequest("order must be newest or oldest")
        }
        return try selections.selection(
            EventFilter(parameters.all), newestFirst: order == "newest")
    }

    // MARK: Lists

    /// GET /api/events
    func events(_ parameters: Parameters) throws -> JSONObjectWriter {
        let (offset, limit) = try parameters.page()
        let selection = try selection(parameters)
        let page = try selection.page(offset: offset, limit: limit)
        let (positions, isIndexed) = try log.withState(since: selection.beginning) { state in
            (page.ordinals.map { state.index.positions[$0] }, state.isIndexed)
        }
        var rows: [UInt64: JSONObjectWriter] = [:]
        try LineReading.forEachLine(at: positions.sorted(), in: log.folder) { prefix, line in
            rows[prefix.position.rawValue] = try row(line)
        }
        var reply = JSONObjectWriter()
        reply.appendMember("total", page.total)
        reply.appendMember("offset", offset)
        reply.appendMember("complete", page.isComplete && isIndexed)
        reply.appendMember("read", page.read)
        reply.appendMember("rows", list: positions.compactMap { rows[$0] })
        return reply
    }

    private static let shownDataBytesMax = 300

    /// The row of an event.
    func row(_ line: RawSpan) throws -> JSONObjectWriter {
        let event = try LogReader.event(
            line, OfflineModel.catalogue, directory: log.directory)
        let status = log.withState { $0.status(at: event.position) }
        var row = JSONObjectWriter()
        row.appendMember("position", Int(clamping: event.position.rawValue))
        row.appendMember("id", event.id.text)
        row.appendMember("time", event.time.description)
        row.appendMember("type", event.type)
        row.appendMember("subject", optional: event.subject)
        row.appendMember("lane", event.lane)
        row.appendMember("source", "urn:uuid:" + event.source.text)
        row.appendMember("own", event.isOwn)
        row.appendMember("sequence", Int(clamping: event.sequence))
        row.appendMember("status", (status ?? .unknown).rawValue)
        row.appendMember("bytes", event.lineBytes)
        row.appendMember("data", Self.beginning(of: event.content.data))
        return row
    }

    private static func beginning(of data: EventDraft.Payload) -> String {
        let bytes: ArraySlice<UInt8> =
            switch data {
            case .none: []
            case .json(let json): json.prefix(shownDataBytesMax)
            case .base64(let text): text.prefix(shownDataBytesMax)
            }
        var end = bytes.endIndex
        // Not in the middle of a character.
        if bytes.count == shownDataBytesMax {
            while end > bytes.startIndex, bytes[end - 1] & 0xC0 == 0x80 { end -= 1 }
            if end > bytes.startIndex, bytes[end - 1] >= 0xC0 { end -= 1 }
        }
        return String(decoding: bytes[..<end], as: UTF8.self)
    }

    /// GET /api/rank
    func rank(_ parameters: Parameters) throws -> JSONObjectWriter {
        guard let position = try parameters.position("position") else {
            throw APIError.badRequest("position is missing")
        }
        let selection = try selection(parameters)
        let ordinal = try log.withState(since: selection.beginning) {
            $0.index.ordinal(at: position.rawValue)
        }
        return .object {
            $0.appendMember("offset", optional: ordinal.flatMap { selection.offset(of: $0) })
        }
    }

    // MARK: Histogram

    private static let histogramTypesMax = 7

    /// GET /api/histogram
    func histogram(_ parameters: Parameters) throws -> JSONObjectWriter {
        let buckets = try parameters.integer("buckets", in: 1...1_000, default: 120)
        let selection = try selection(parameters)
        let (ordinals, isComplete) = try selection.all()
        return try log.withState(since: selection.beginning) { state in
            let index = state.index
            var reply = JSONObjectWriter()
            let times = ordinals.lazy.map { index.times[Int($0)] }
            let start = times.min() ?? 0
            let width = max(1, ((times.max() ?? 0) - start) / Int64(buckets) + 1)
            var byType = [Int](repeating: 0, count: index.names.names.count)
            for ordinal in ordinals { byType[Int(index.types[Int(ordinal)])] += 1 }
            let present = byType.indices.filter { byType[$0] > 0 }
                .sorted { (byType[$1], $0) < (byType[$0], $1) }
            let shown = present.prefix(Self.histogramTypesMax)
            var columns = [Int](repeating: shown.count, count: byType.count)
            for (column, type) in shown.enumerated() { columns[type] = column }
            let hasOther = present.count > shown.count
            let columnCount = shown.count + (hasOther ? 1 : 0)
            var counts = [Int](repeating: 0, count: buckets * max(1, columnCount))
            for ordinal in ordinals {
                let bucket = Int((index.times[Int(ordinal)] - start) / width)
                counts[bucket * columnCount + columns[Int(index.types[Int(ordinal)])]] += 1
            }
            reply.appendMember("start", Self.text(start))
            reply.appendMember("end", Self.text(start + width * Int64(buckets)))
            reply.appendMember("milliseconds", Int(width))
            reply.appendMember(
                "types",
                strings: shown.map { index.names.names[$0] } + (hasOther ? ["other"] : []))
            let lists = (0..<buckets).map { bucket in
                let list = counts[(bucket * columnCount)..<((bucket + 1) * columnCount)]
                return list.allSatisfy { $0 == 0 }
                    ? "[]" : "[" + list.map(String.init).joined(separator: ",") + "]"
            }
            reply.appendMember("buckets", raw: Array("[\(lists.joined(separator: ","))]".utf8))
            reply.appendMember("complete", isComplete && state.isIndexed)
            return reply
        }
    }

    // MARK: Exports

    private static let exportBytesMax = 1_024 * 1_024 * 1_024

    /// GET /api/export
    func export(_ parameters: Parameters) throws -> APIReply {
        let format = parameters.string("format") ?? "ndjson"
        guard format == "ndjson" || format == "csv" else {
            throw APIError.badRequest("format must be ndjson or csv")
        }
        let selection = try selection(parameters)
        var all = try selection.all()
        while !all.isComplete {
            Thread.sleep(forTimeInterval: 0.02)
            all = try selection.all()
        }
        let (positions, size) = try log.withState(since: selection.beginning) { state in
            (
                all.ordinals.map { state.index.positions[Int($0)] },
                all.ordinals.reduce(0) { $0 + Int(state.index.lineBytes[Int($1)]) }
            )
        }
        guard size <= Self.exportBytesMax else {
            throw APIError(
                422, "tooLarge",
                "the selected events have \(size) bytes; at most "
                    + "\(Self.exportBytesMax) are sent to a browser",
                remedy: "narrow the filter, or run `logtool export`")
        }
        var body: [UInt8] = []
        if format == "csv" { body += Array((Self.csvColumns.joined(separator: ",") + "\r\n").utf8) }
        try LineReading.forEachLine(at: positions, in: log.folder) { prefix, line in
            guard format == "csv" else {
                prefix.appendExported(line, to: &body)
                return body.append(UInt8(ascii: "\n"))
            }
            let event = try LogReader.event(
                line, OfflineModel.catalogue, directory: log.directory)
            let data: [UInt8]? =
                switch event.content.data {
                case .none: nil
                case .json(let json): json
                case .base64(let text): text
                }
            let cells = [
                "\(event.position)", event.id.text, event.time.description, event.type,
                event.subject, event.lane, "urn:uuid:" + event.source.text,
                "\(event.sequence)", data.map { String(decoding: $0, as: UTF8.self) },
            ]
            let fields = cells.map { $0.map { CSVField.of(Array($0.utf8)) } ?? [] }
            body += fields.joined(separator: [UInt8(ascii: ",")]) + [0x0D, 0x0A]
        }
        return APIReply(
            contentType: format == "csv" ? "text/csv; charset=utf-8" : "application/x-ndjson",
            fileName: "events.\(format)", body)
    }

    private static let csvColumns = [
        "position", "id", "time", "type", "subject", "lane", "source", "sequence", "data",
    ]
}

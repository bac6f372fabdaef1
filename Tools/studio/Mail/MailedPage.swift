// One HTML file with the pages and a log's data, for a log on a device that only its user can reach: it is opened
// without a server and without a network. Spec/operations/studio.md, "The file".

import DaybookOffline
import EventSourcing
import Foundation
import LogFormat
import LogStorage

/// The content of the file.
package struct MailedPage {
    /// The number of events in the file.
    package let events: Int
    /// The number of older events that were left out.
    package let leftOut: Int
    private let html: [UInt8]
    private let directory: String

    /// The size of the file in bytes.
    package var byteCount: Int { html.count }

    /// The most bytes of lines in the file: a browser holds all of them in memory.
    private static let lineBytesMax = 64 * 1_024 * 1_024
    private static let storiesMax = 200

    /// The number of times that the whole log is read, nearly.
    package static let reads = 6
    /// The number of copies that are read until one has no damage at its end, where a writer may be in the middle
    /// of a write.
    private static let attemptsMax = 3

    /// Reads a log as it is at this moment, whatever other processes do with it meanwhile.
    ///
    /// - Parameters:
    ///   - account: the account that the log must have; nil accepts any.
    ///   - progress: called with the number of bytes of each read. All of them are about `reads` times those of the
    ///     log.
    /// - Throws: `LogError` if there is no log, or `wrongAccount`; a damaged log is shown up to the damage.
    ///   `LogError` (`io`) also soon after the task is cancelled.
    /// - Complexity: O(bytes), and the rows that changed or, of views without keys, are compared.
    package init(
        of directory: String, account: String?,
        progress: @escaping @Sendable (Int) -> Void = { _ in }
    ) throws {
        self.directory = directory
        var attempt = 1
        while true {
            let isLast = attempt == Self.attemptsMax
            do {
                let made = try Self.make(
                    of: directory, account, mayBeDamaged: isLast, progress)
                (html, events, leftOut) = made
                return
            } catch is Damaged {
            } catch let error as LogError where error.code == .noSuchLog {
                // Compaction has replaced a segment that the snapshot did not hold open, or there is no log.
                if isLast { throw Self.replaced(error, in: directory) }
            }
            attempt += 1
        }
    }

    /// A log that may be damaged only since it was read while a segment was replaced.
    private struct Damaged: Error {}

    /// The error of the last attempt: `io` if the log exists.
    private static func replaced(_ error: LogError, in directory: String) -> LogError {
        do throws(LogError) {
            guard try !LogDirectory.segments(of: directory, POSIXFileSystem()).isEmpty else {
                return LogError(
                    .noSuchLog, path: directory, "the log was erased while it was read")
            }
        } catch { return error }
        return LogError(
            .io, path: error.path,
            "compaction replaces segments while the log is read; try again when it has finished")
    }

    private static func make(
        of directory: String, _ account: String?, mayBeDamaged: Bool,
        _ progress: @escaping @Sendable (Int) -> Void
    ) throws -> (html: [UInt8], events: Int, leftOut: Int) {
        let files = try CountingFileSystem(LogSnapshot(of: directory)) { bytes throws(FileError) in
            progress(bytes)
            guard Task.isCancelled else { return }
            throw FileError(
                .io, operation: "read", path: directory, reason: "the task was cancelled")
        }
        let log = FollowedLog(LogFolder(directory, files), account: account)
        try log.checkAccount()
        try log.readOnce()
        switch log.withState({ $0.problem?.code }) {
        case "damaged" where !mayBeDamaged: throw Damaged()
        case "noLog": throw LogError(.noSuchLog, path: directory, "a segment was replaced")
        default: break
        }
        // Throws what a log that cannot be read at all is refused for.
        _ = try log.folder.reader.files()
        let (positions, all) = log.withState { state in
            var bytes = 0
            let index = state.index
            let shown = index.positions.indices.reversed().prefix { ordinal in
                bytes += Int(index.lineBytes[ordinal])
                return bytes <= Self.lineBytesMax
            }
            return (shown.reversed().map { index.positions[$0] }, index.count)
        }
        let html = try Self.html(Self.data(positions, API(log, isWritable: false)))
        return (html, positions.count, all - positions.count)
    }

    private static func data(_ positions: [UInt64], _ api: API) throws -> [UInt8] {
        let log = api.log
        var data = JSONObjectWriter()
        data.appendMember("form", 1)
        data.appendMember("log", raw: try api.overview().finished())
        data.appendMember("lines", raw: try lines(positions, log))
        data.appendMember("views", list: try views(api))
        data.appendMember("stories", raw: try stories(api).finished())
        data.appendMember("outbox", raw: try api.outbox().finished())
        let maps = try api.segmentMaps()
        data.appendMember("files", raw: try api.files(maps).finished())
        var segments = JSONObjectWriter()
        for map in maps { segments.appendMember(map.name, raw: api.segment(map).finished()) }
        data.appendMember("segments", raw: segments.finished())
        data.appendMember(
            "compaction", raw: (try? api.compaction().finished()) ?? Array("null".utf8))
        data.appendMember("verify", raw: try api.verify().finished())
        return data.finished()
    }

    private static func lines(_ positions: [UInt64], _ log: FollowedLog) throws -> [UInt8] {
        var lines: [[UInt8]] = []
        try LineReading.forEachLine(at: positions, in: log.folder) { prefix, line in
            let status = log.withState { $0.status(at: prefix.position) }
            lines.append(
                JSONObjectWriter.object {
                    $0.appendMember("status", (status ?? .unknown).rawValue)
                    $0.appendMember("line", line.text)
                }.finished())
        }
        return JSONObjectWriter.array(lines)
    }

    private static func views(_ api: API) throws -> [JSONObjectWriter] {
        try ViewTimeline.names.indices.map { view in
            let (points, changes) = api.log.withState { state in
                (
                    state.fold.histories[view].finished(after: state.compactedThrough),
                    state.changes(of: view).map { Int(clamping: $0) }
                )
            }
            return try ViewRowsHistory(of: view, points).json(api.views, changes: changes)
        }
    }

    /// The stories of the events that wait, those that are held first.
    private static func stories(_ api: API) throws -> JSONObjectWriter {
        let (entries, last) = api.log.withState { ($0.fold.outbox.entries.map { $0 }, $0.last) }
        let shown =
            entries.filter { $0.status != .pending } + entries.filter { $0.status == .pending }
        let stories = try EventStory.read(
            of: shown.prefix(storiesMax).map(\.id), in: api.log.directory,
            api.log.folder.fileSystem, catalogue: OfflineModel.catalogue, through: last)
        return .object { writer in
            for story in stories.values.sorted(by: { $0.position < $1.position }) {
                guard let event = story.event else { continue }
                writer.appendMember(
                    "\(story.position)", raw: api.json(of: story, event).finished())
            }
        }
    }

    // MARK: The file

    private static func html(_ data: [UInt8]) -> [UInt8] {
        let policy =
            "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
            + "script-src 'unsafe-inline'; style-src 'unsafe-inline'; base-uri 'none'; "
            + "form-action 'none'\">"
        let page = StudioPages.text("index.html").replacing(
            "<link rel=\"stylesheet\" href=\"studio.css\">",
            with: "\(policy)<style>\(StudioPages.text("studio.css"))</style>")
        let script = "<script type=\"module\" src=\"studio.js\"></script>"
        let parts = page.split(separator: script, maxSplits: 1)
        var html = Array((parts.first ?? "").utf8)
        html += Array("<script type=\"application/json\" id=\"daybook-data\">".utf8)
        // A tag in the data cannot end the element.
        for byte in data {
            if byte == UInt8(ascii: "<") {
                html += Array("\\u003c".utf8)
            } else {
                html.append(byte)
            }
        }
        html += Array("</script>\n<script type=\"module\">\n".utf8)
        html += Array(StudioPages.script.utf8)
        html += Array("\n</script>".utf8)
        if parts.count > 1 { html += Array(parts[1].utf8) }
        return html
    }

    /// Writes the file, readable by its owner only. It appears when it is complete.
    ///
    /// - Throws: `LogError` (`io`) if there is a file already, or it cannot be written.
    package func write(to path: String) throws {
        let file = try ExportFile(
            path, .refused("remove the file"), log: directory)
        try file.write(html)
        try file.finish()
    }
}

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

    /// Reads a log.
    ///
    /// - Parameter account: the account that the log must have; nil accepts any.
    /// - Throws: `LogError` if there is no log, or `wrongAccount`; a damaged log is shown up to the damage.
    /// - Complexity: O(bytes), and 2,000 states of each view.
    package init(of directory: String, account: String?) throws {
        self.directory = directory
        let log = FollowedLog(directory, account: account)
        try log.checkAccount()
        log.start()
        defer { log.stop() }
        while !log.withState({ $0.isFolded || $0.foldProblem != nil }) {
            Thread.sleep(forTimeInterval: 0.02)
        }
        // Throws what a log that cannot be read at all is refused for.
        _ = try LogReader(directory).files()
        let api = API(log, isWritable: false)
        let (positions, all) = log.withState { state in
            var bytes = 0
            let index = state.index
            let shown = index.positions.indices.reversed().prefix { ordinal in
                bytes += Int(index.lineBytes[ordinal])
                return bytes <= Self.lineBytesMax
            }
            return (shown.reversed().map { index.positions[$0] }, index.count)
        }
        events = positions.count
        leftOut = all - positions.count
        var data = JSONObjectWriter()
        data.appendMember("form", 1)
        data.appendMember("log", raw: try api.overview().finished())
        data.appendMember("lines", raw: try Self.lines(positions, log))
        data.appendMember("views", list: try ViewHistory.all(of: api, log))
        data.appendMember("stories", raw: Self.stories(api, log).finished())
        data.appendMember("outbox", raw: try api.outbox().finished())
        data.appendMember("files", raw: try api.files().finished())
        var segments = JSONObjectWriter()
        for name in try LogDirectory.segments(of: directory, POSIXFileSystem()) {
            segments.appendMember(name, raw: try api.segment(name).finished())
        }
        data.appendMember("segments", raw: segments.finished())
        data.appendMember(
            "compaction", raw: (try? api.compaction().finished()) ?? Array("null".utf8))
        data.appendMember("verify", raw: try api.verify().finished())
        html = Self.html(data.finished())
    }

    private static func lines(_ positions: [UInt64], _ log: FollowedLog) throws -> [UInt8] {
        var lines: [[UInt8]] = []
        try LineReading.forEachLine(at: positions, in: log.directory) { prefix, line in
            let status = log.withState { state in
                state.index.ordinal(at: prefix.position.rawValue).map { state.status($0) }
            }
            lines.append(
                JSONObjectWriter.object {
                    $0.appendMember("status", (status ?? .unknown).rawValue)
                    $0.appendMember("line", line.text)
                }.finished())
        }
        return JSONObjectWriter.array(lines)
    }

    /// The stories of the events that wait, those that are held first.
    private static func stories(_ api: API, _ log: FollowedLog) -> JSONObjectWriter {
        let entries = log.withState { $0.fold.outbox.entries.map { $0 } }
        let shown =
            entries.filter { $0.status != .pending } + entries.filter { $0.status == .pending }
        return .object { writer in
            for entry in shown.prefix(storiesMax) {
                guard let story = try? api.story(at: entry.position) else { continue }
                writer.appendMember("\(entry.position)", raw: story.finished())
            }
        }
    }

    // MARK: The file

    private static func html(_ data: [UInt8]) -> [UInt8] {
        let policy =
            "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
            + "script-src 'unsafe-inline'; style-src 'unsafe-inline'\">"
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
            path, .refused("choose another path or remove the file"), log: directory)
        try file.write(html)
        try file.finish()
    }
}

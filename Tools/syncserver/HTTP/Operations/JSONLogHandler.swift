// The server's log: one JSON object a line on standard error. LogWriter writes the lines.
// Spec/operations/operating.md, OPS-9.

import EventSourcing
import Foundation
import Logging

/// Writes log messages as JSON lines.
struct JSONLogHandler: LogHandler {
    var logLevel: Logger.Level
    var metadata: Logger.Metadata = [:]

    subscript(metadataKey key: String) -> Logger.Metadata.Value? {
        get { metadata[key] }
        set { metadata[key] = newValue }
    }

    private let writer: LogWriter

    init(level: Logger.Level, writer: LogWriter) {
        logLevel = level
        self.writer = writer
    }

    func log(event: LogEvent) {
        var line = Array("{".utf8)
        func append(_ name: String, _ value: Logger.MetadataValue) {
            if line.count > 1 { line.append(UInt8(ascii: ",")) }
            JSONText.append(name, to: &line)
            line.append(UInt8(ascii: ":"))
            if case .stringConvertible(let number as Int) = value {
                line.append(contentsOf: Array(String(number).utf8))
            } else {
                JSONText.append("\(value)", to: &line)
            }
        }
        append("time", "\(Timestamp(Date()))")
        append("level", "\(event.level)")
        append("message", "\(event.message)")
        let all = metadata.merging(event.metadata ?? [:]) { $1 }
        for (key, value) in all.sorted(by: { $0.key < $1.key }) {
            append(key == "hb.request.id" ? "request" : key, value)
        }
        line.append(contentsOf: Array("}\n".utf8))
        writer.write(line)
    }
}

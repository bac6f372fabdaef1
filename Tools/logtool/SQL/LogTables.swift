// The tables of a log for questions in SQL: events, segments, outbox, and one for each view.
// Spec/operations/logtool.md, TOOL-52.

import DaybookOffline
import Foundation
import LogFormat
import LogStorage

/// The tables of a log.
enum LogTables {
    /// The tables as the log was at a position.
    ///
    /// - Parameter end: the last position; nil for the present end.
    static func all(_ reader: LogReader, through end: Position?) -> [SQLTable] {
        let views: [SQLTable] = views.map { view in
            RowsTable(view.name, columns: view.columns) {
                try rows(of: view, reader, through: end)
            }
        }
        let own: [SQLTable] = [
            EventsTable(reader, through: end ?? Position(FormatLimit.positionMax)),
            RowsTable("segments", columns: segmentColumns) {
                PortionedRows(ViewRows(try segments(reader)), reader)
            },
        ]
        return own + views
    }

    /// The views that are tables.
    static let views: [any ListableView.Type] = [Outbox.self] + OfflineModel.views

    static let segmentColumns = [
        "name", "first", "bytes", "isSealed", "compactedThrough",
    ]

    private static func rows(
        of view: any ListableView.Type, _ reader: LogReader, through end: Position?
    ) throws -> PortionedRows {
        let catalogue = reader.modelCatalogue
        let (state, _) = try reader.fold(
            through: end, catalogue: catalogue, from: { view.init() as any ListableView }
        ) { state, event in
            let event = catalogue.newestForm(of: event)
            if view.folds(event.type) { state.fold(event) }
        }
        // Again, because a compaction may have run while the log was read.
        try EventData.refuseCompacted(end?.rawValue, reader)
        return PortionedRows(state.rows(), reader)
    }

    /// - Parameter end: the last position that a segment may begin at; nil for all.
    static func segments(_ reader: LogReader, through end: Position? = nil) throws -> [ViewRow] {
        try reader.outline().filter { $0.base <= end ?? $0.base }.map { segment in
            var row = ViewRow()
            row.appendField("name", SegmentName.of(segment.base))
            row.appendField("first", Int(clamping: segment.base.rawValue))
            row.appendField("bytes", segment.bytes)
            row.appendField("isSealed", segment.isSealed)
            row.appendField("compactedThrough", Int(clamping: segment.compactedThrough.rawValue))
            return row
        }
    }
}

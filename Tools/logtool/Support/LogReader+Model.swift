// The event types of a log that logtool reads.

import DaybookOffline
import EventSourcing
import LogStorage

extension LogReader {
    /// The model's event types, with the rules that the log has recorded. One small read.
    var modelCatalogue: EventCatalogue { adding(recordedRulesTo: OfflineModel.catalogue) }
}

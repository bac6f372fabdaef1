// A posted batch, up to the call of the storage. Spec/protocol/sync-protocol.md.

import DaybookOffline
import EventSourcing
import LogFormat
import SyncServerBatch
import SyncWire

struct BatchCheck {
    private static let now = Timestamp(milliseconds: 1_800_000_000_000)

    func check(_ bytes: [UInt8]) throws {
        guard
            let events = try? BatchReader.read(
                bytes.span.bytes, catalogue: OfflineModel.catalogue, now: Self.now)
        else { return }
        try expect(events.count <= WireLimits.events, "a batch has too many events")
        for event in events {
            guard let content = event.content else {
                try expect(event.fault != nil, "an unreadable event has no fault")
                continue
            }
            try check(event, content)
        }
    }

    /// Checks that the line to store is one line with the event's content.
    private func check(_ event: ReceivedEvent, _ content: ReceivedEvent.Content) throws {
        let line = content.line.span.bytes
        try expect(
            !content.line.contains(0x0A) && !content.line.contains(0x0D),
            "a stored line has a line break")
        let prefix: LinePrefix
        let reread: DecodedLine
        do {
            prefix = try LinePrefix(line)
            reread = try LineDecoder.decode(line)
        } catch { throw BrokenProperty(description: "a stored line is refused: \(error)") }
        try expect(
            prefix.isOwn && prefix.id == event.id.integer && prefix.source == content.source.integer
                && prefix.sequence == UInt64(content.sequence), "a stored line has another prefix")
        try expect(
            reread.draft.lane.map(EntityID.init) == event.lane, "a stored line is in another lane")
        try expect(
            reread.draft.time == content.lwwTimestamp.time
                && LinePrefix.time(of: line) == content.lwwTimestamp.time.milliseconds,
            "a stored line has another time")
        try expect(
            reread.draft.data == content.draft.data && reread.draft.type == content.draft.type
                && reread.draft.subject == content.draft.subject, "a stored line has other content")
    }
}

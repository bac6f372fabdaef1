// The encoded state of DownloadsView, and the retention of its events. Spec/model/views.md, VIEW-10;
// Spec/format/compaction.md, CMP-3.

import Daybook
import HashTreeCollections

extension DownloadsView {
    /// The bit of an entry's first byte that is set if the origin is encoded; the other bits are the tag.
    private static let hasOrigin: UInt8 = 0x80

    private enum Tag: UInt8 {
        case removed, queued, downloading, pausedByUser, pausedByConnection, pausedByCellular
        case completed, failed, cancelled

        init(_ state: State) {
            self =
                switch state {
                case .queued: .queued
                case .downloading: .downloading
                case .paused(_, .user): .pausedByUser
                case .paused(_, .connection): .pausedByConnection
                case .paused(_, .cellular): .pausedByCellular
                case .completed: .completed
                case .failed: .failed
                case .cancelled: .cancelled
                }
        }
    }

    public func encodedState() -> [UInt8]? {
        var writer = StateWriter()
        writer.write(count: ignored)
        var jobs = writer.entries(count: entries.count)
        for (jobId, entry) in entries {
            writer.begin(jobId, of: &jobs)
            guard case .known(let queued, let state) = entry else {
                if case .removed(let lwwTimestamp) = entry {
                    writer.write(byte: Tag.removed.rawValue)
                    writer.write(lwwTimestamp)
                }
                continue
            }
            writer.write(byte: Tag(state.value).rawValue | (queued == nil ? 0 : Self.hasOrigin))
            switch state.value {
            case .queued, .cancelled: break
            case .downloading(let numbers), .paused(let numbers, _):
                Self.write(numbers, to: &writer)
            case .failed(let numbers, let message):
                Self.write(numbers, to: &writer)
                writer.write(message)
            case .completed(let total): writer.write(count: total)
            }
            writer.write(state.lwwTimestamp)
            guard let queued else { continue }
            writer.write(queued.origin.value.cityId)
            writer.write(queued.origin.value.isExplicit)
            writer.write(queued.origin.lwwTimestamp)
            writer.write(queued.first)
        }
        writer.end(jobs)
        return writer.bytes
    }

    private static func write(_ numbers: DownloadNumbers, to writer: inout StateWriter) {
        writer.write(numbers.currentStep)
        writer.write(count: numbers.totalBytes)
        writer.write(count: numbers.downloadedBytes)
    }

    public init(encodedState: [UInt8]) throws {
        var reader = StateReader(encodedState)
        let ignored = try reader.tally()
        var entries: TreeDictionary<EntityID, Entry> = [:]
        try reader.entries { (reader, jobId) throws(EventError) in
            let first = try reader.byte()
            guard let tag = Tag(rawValue: first & ~Self.hasOrigin) else {
                throw reader.fault("a job has an unknown state")
            }
            guard tag != .removed else {
                guard first == tag.rawValue else {
                    throw reader.fault("a removed job has an origin")
                }
                entries[jobId] = .removed(try reader.lwwTimestamp())
                return
            }
            let state = Register(try Self.state(tag, &reader), try reader.lwwTimestamp())
            guard first & Self.hasOrigin != 0 else {
                entries[jobId] = .known(queued: nil, state: state)
                return
            }
            let origin = Register(
                Origin(cityId: try reader.string(), isExplicit: try reader.bool()),
                try reader.lwwTimestamp())
            let queued = Queued(first: try reader.lwwTimestamp(), origin: origin)
            guard queued.first <= origin.lwwTimestamp, origin.lwwTimestamp <= state.lwwTimestamp
            else {
                throw reader.fault("a job was queued after its last state")
            }
            entries[jobId] = .known(queued: queued, state: state)
        }
        try reader.finish()
        self.init(entries: entries, ignored: ignored)
    }

    private static func state(
        _ tag: Tag, _ reader: inout StateReader
    ) throws(EventError) -> State {
        switch tag {
        case .removed, .cancelled: .cancelled
        case .queued: .queued
        case .downloading: .downloading(try numbers(&reader))
        case .pausedByUser: .paused(try numbers(&reader), .user)
        case .pausedByConnection: .paused(try numbers(&reader), .connection)
        case .pausedByCellular: .paused(try numbers(&reader), .cellular)
        case .completed: .completed(totalBytes: try reader.nonNegative())
        case .failed: .failed(try numbers(&reader), try reader.string())
        }
    }

    private static func numbers(_ reader: inout StateReader) throws(EventError) -> DownloadNumbers {
        let step = try reader.string()
        let (total, done) = (try reader.nonNegative(), try reader.nonNegative())
        guard done <= total else {
            throw reader.fault("the downloaded bytes exceed the total bytes")
        }
        return DownloadNumbers(currentStep: step, totalBytes: total, downloadedBytes: done)
    }
}

extension DownloadsView: CompactableView {
    /// Removals are needed forever and supersede all other events of their job. An existing job needs the
    /// winners of its state and its origin, and the first event that queued it.
    public func retention(of event: Event) -> Retention {
        guard event.type.hasPrefix("daybook.download.") else { return .unconcerned }
        let change: DownloadChange
        do {
            guard let known = try DownloadChange(event) else { return .unconcerned }
            change = known
        } catch { return .needed(.notUnderstood) }
        guard change.state != nil else { return .needed(.deletion) }
        switch entries[EntityID(change.jobId)] {
        case .removed(let lwwTimestamp): return .superseded(by: [lwwTimestamp])
        case .known(let queued, let state):
            guard change.origin != nil else { return .of(event, heldBy: [state.lwwTimestamp]) }
            return .of(
                event, heldBy: [state.lwwTimestamp, queued?.origin.lwwTimestamp, queued?.first])
        case nil: return .needed(.current)
        }
    }
}

// The downloads as bytes of a checkpoint, and which events they still need. Spec/model/views.md, VIEW-10;
// Spec/format/compaction.md, CMP-3.

import Daybook
import HashTreeCollections

extension DownloadsView {
    /// What stands first in an encoded entry: the state, with this bit if the job has its origin.
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
        writer.add(count: ignored)
        var jobs = writer.entries(count: entries.count)
        for (jobId, entry) in entries {
            writer.begin(jobId, of: &jobs)
            guard case .known(let queued, let state) = entry else {
                if case .removed(let stamp) = entry {
                    writer.add(byte: Tag.removed.rawValue)
                    writer.add(stamp)
                }
                continue
            }
            writer.add(byte: Tag(state.value).rawValue | (queued == nil ? 0 : Self.hasOrigin))
            switch state.value {
            case .queued, .cancelled: break
            case .downloading(let numbers), .paused(let numbers, _): Self.add(numbers, to: &writer)
            case .failed(let numbers, let message):
                Self.add(numbers, to: &writer)
                writer.add(message)
            case .completed(let total): writer.add(count: total)
            }
            writer.add(state.stamp)
            guard let queued else { continue }
            writer.add(queued.origin.value.cityId)
            writer.add(queued.origin.value.isExplicit)
            writer.add(queued.origin.stamp)
            writer.add(queued.first)
        }
        writer.end(jobs)
        return writer.bytes
    }

    private static func add(_ numbers: DownloadNumbers, to writer: inout StateWriter) {
        writer.add(numbers.currentStep)
        writer.add(count: numbers.totalBytes)
        writer.add(count: numbers.downloadedBytes)
    }

    public init(encodedState: [UInt8]) throws {
        var reader = StateReader(encodedState)
        let ignored = try reader.tally()
        var entries: TreeDictionary<EntityID, Entry> = [:]
        try reader.entries { (reader, jobId) throws(EventError) in
            let first = try reader.byte()
            guard let tag = Tag(rawValue: first & ~Self.hasOrigin) else {
                throw reader.fault("a job is in no known state")
            }
            guard tag != .removed else {
                guard first == tag.rawValue else { throw reader.fault("a job is half removed") }
                entries[jobId] = .removed(try reader.stamp())
                return
            }
            let state = Register(try Self.state(tag, &reader), try reader.stamp())
            guard first & Self.hasOrigin != 0 else {
                entries[jobId] = .known(queued: nil, state: state)
                return
            }
            let origin = Register(
                Origin(cityId: try reader.string(), isExplicit: try reader.bool()),
                try reader.stamp())
            let queued = Queued(first: try reader.stamp(), origin: origin)
            guard queued.first <= origin.stamp, origin.stamp <= state.stamp else {
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
        guard done <= total else { throw reader.fault("more is downloaded than there is") }
        return DownloadNumbers(currentStep: step, totalBytes: total, downloadedBytes: done)
    }
}

extension DownloadsView: CompactableView {
    /// Removals are needed for ever, and supersede everything else of their job. Of a job that is
    /// there, the events that hold its state and its origin are needed, and the first that queued it.
    public func retention(of event: Event) -> Retention {
        guard event.type.hasPrefix("daybook.download.") else { return .unconcerned }
        let change: DownloadChange
        do {
            guard let known = try DownloadChange(event) else { return .unconcerned }
            change = known
        } catch { return .needed(.notUnderstood) }
        guard change.state != nil else { return .needed(.deletion) }
        switch entries[EntityID(change.jobId)] {
        case .removed(let stamp): return .superseded(by: [stamp])
        case .known(let queued, let state):
            guard change.origin != nil else { return .of(event, heldBy: [state.stamp]) }
            return .of(event, heldBy: [state.stamp, queued?.origin.stamp, queued?.first])
        case nil: return .needed(.current)
        }
    }
}

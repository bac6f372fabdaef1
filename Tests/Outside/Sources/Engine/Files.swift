// The code of the article "Storing files".

import Daybook
import Foundation

// Files-1 begins
/// A recording of a lesson was kept.
struct RecordingKept: EventPayload, Codable {
    static let type = "com.example.recording.kept"
    var lesson: String
    var file: FileID
    var subject: String? { lesson }
}

/// A recording is no longer needed.
struct RecordingDropped: EventPayload, Codable {
    static let type = "com.example.recording.dropped"
    var file: FileID
}

struct Recordings: Projection, Codable, FileReferring {
    static let name = "recordings"
    static let version = 1
    /// The lesson of each recording.
    private(set) var lessons: StateDictionary<FileID, String> = [:]

    mutating func fold(_ event: Event) {
        if event.type == RecordingKept.type,
            let kept = try? event.payload(as: RecordingKept.self)
        {
            lessons[kept.file] = kept.lesson
        } else if event.type == RecordingDropped.type,
            let dropped = try? event.payload(as: RecordingDropped.self)
        {
            lessons[dropped.file] = nil
        }
    }

    func refers(to file: FileID) -> Bool { lessons[file] != nil }
}
// Files-1 ends

package enum Files {
    package static func open(at url: URL) async throws -> (EventStore, FileStore) {
        // Files-5 begins
        let store = try await EventStore.open(
            at: url, account: "user-456", views: [Recordings.self])
        let files = FileStore(store)
        // Files-5 ends
        return (store, files)
    }

    package static func keep(
        _ recording: [UInt8], in store: EventStore, _ files: FileStore
    ) async throws -> FileID {
        // Files-2 begins
        let file = try await files.store(recording) { file in
            try await store.append(RecordingKept(lesson: "lesson-7", file: file))
            return file
        }
        // Files-2 ends
        return file
    }

    package static func read(_ file: FileID, in files: FileStore) async throws -> [UInt8] {
        // Files-3 begins
        let recording = try await files.read(file)  // checked against its id
        let path = files.path(of: file)  // for a player; not checked
        // Files-3 ends
        print(path)
        return recording
    }

    package static func drop(
        _ file: FileID, in store: EventStore, _ files: FileStore
    ) async throws -> Int {
        // Files-4 begins
        try await store.append(RecordingDropped(file: file))
        let collected = try await files.collect()
        print("\(collected.files) files, \(collected.bytes) bytes are free")
        // Files-4 ends
        return collected.files
    }
}

// A small app for the terminal: one person's travel notes on several devices. A device is a folder.
// Tools/demo runs it on two of them with a server. Written as an app outside this package would be: it
// imports DaybookOffline and nothing else of the package.

import DaybookOffline
import Foundation

@main
struct TravelNotes {
    private static let help = """
        note CITY TEXT      write a note about a city
        notes CITY          list the notes about a city, numbered
        edit NUMBER TEXT    change a note of the last list
        star CITY 1-5       rate a city
        sync                exchange changes with the server
        sync mine           the same; where two devices changed one note, keep what this one wrote
        sync theirs         the same; keep what the server has
        outbox              what the server does not have yet
        then POSITION CITY  how many notes about a city there were at a position of the log
        quit
        """

    private let store: OfflineStore
    private let server: URL?
    private static let traveller = "ana"
    /// The notes that `notes` printed last, which `edit` numbers.
    private var listedNotes: [Note] = []

    static func main() async {
        let arguments = CommandLine.arguments.dropFirst()
        // Swift has replaced bytes that are not UTF-8: the folder would be another one.
        let isUTF8 = arguments.indices.allSatisfy {
            CommandLine.unsafeArgv[$0].map { String(validatingCString: $0) != nil } ?? false
        }
        guard let folder = arguments.first, arguments.count <= 2, isUTF8 else {
            print("usage: travelnotes FOLDER [SERVER-URL], both in UTF-8")
            exit(64)
        }
        do {
            let store = try await OfflineStore.open(
                at: URL(filePath: folder), account: traveller,
                rules: [.of(CityStarred.self, action: "STAR_CITY")], views: [CityStars.self])
            var app = TravelNotes(
                store: store, server: arguments.dropFirst().first.flatMap(URL.init))
            let observer = app.printNoteCount()
            await app.run()
            observer.cancel()
            try await store.close()
        } catch {
            printError(error)
            exit(1)
        }
    }

    private init(store: OfflineStore, server: URL?) {
        self.store = store
        self.server = server
    }

    /// Prints the number of notes now and whenever it changes, by a command or a sync.
    private func printNoteCount() -> Task<Void, Never> {
        let count = store.query(NotesView.self) { $0.counts.live }
        return Task.detached {
            for await count in count.changes { print("  (notes on this device: \(count))") }
        }
    }

    /// Reads and performs commands until the input ends, also after a command that fails.
    private mutating func run() async {
        let isTyped = isatty(FileHandle.standardInput.fileDescriptor) == 1
        while let line = readLine() {
            if !isTyped { print(">", line) }
            let words = line.split(separator: " ", maxSplits: 2).map(String.init)
            if words.first == "quit" { return }
            do { try await perform(words) } catch { Self.printError(error) }
        }
    }

    private mutating func perform(_ words: [String]) async throws {
        switch (words.first ?? "", words.count) {
        case ("note", 3):
            try await store.notes.add(words[2], city: words[1], by: Self.traveller)
        case ("notes", 2):
            printNotes(about: words[1])
        case ("edit", 3):
            guard let number = Int(words[1]), listedNotes.indices.contains(number - 1) else {
                return print("There is no note \(words[1]) in the last list.")
            }
            try await store.notes.update(listedNotes[number - 1].id, words[2], by: Self.traveller)
        case ("star", 3):
            guard let stars = Int(words[2]) else { return print("'\(words[2])' is no number.") }
            try await store.append(CityStarred(city: words[1], stars: stars))
        case ("sync", 1): try await sync(resolver: nil)
        case ("sync", 2) where words[1] == "mine": try await sync(resolver: KeepMine())
        case ("sync", 2) where words[1] == "theirs": try await sync(resolver: KeepTheirs())
        case ("outbox", 1):
            if store.view(Outbox.self).count == 0 { print("The server has everything.") }
            for entry in store.outbox.entries {
                print(entry.action, entry.entityId, entry.status.rawValue, entry.errorMessage ?? "")
            }
        case ("then", 3):
            guard let number = UInt64(words[1]) else {
                return print("'\(words[1])' is no position.")
            }
            let past = try await store.state(at: Position(number))
            print("notes about \(words[2]): \(past.view(NotesView.self).notes(in: words[2]).count)")
        case ("", _): break
        default: print(Self.help)
        }
    }

    private mutating func printNotes(about city: String) {
        listedNotes = Array(store.notes(in: city).current)
        let stars = store.view(CityStars.self)[city]
        print(city, stars.map { String(repeating: "*", count: $0) } ?? "(no rating)")
        for (index, note) in listedNotes.enumerated() { print("  \(index + 1). \(note.content)") }
    }

    private func sync(resolver: (any ConflictResolver)?) async throws {
        guard let server else { return print("There is no server: travelnotes FOLDER SERVER-URL") }
        let report = try await store.sync(to: server, resolver: resolver)
        print(
            "\(report.applied) sent, \(report.received) received, \(report.conflict) in conflict,",
            "\(report.resolved) resolved, \(report.pending) still to go")
        if let message = report.message { print(message) }
        if store.outbox.entries.contains(where: { $0.status == .conflict }) {
            print("Another device changed the same note. Decide with 'sync mine' or 'sync theirs'.")
        }
    }

    /// Prints what happened and what to do next: every public error of the library has both.
    private static func printError(_ error: any Error) {
        print("Failed:", error.localizedDescription)
        if let suggestion = (error as? any LocalizedError)?.recoverySuggestion { print(suggestion) }
    }
}

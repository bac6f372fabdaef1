// The deaths of a history's app (kill, power cut, failed sync) and its restarts, with the disk as the death
// left it, or with an older image or copy. Every opening is checked.

import DaybookOffline
import DaybookTestKit
import Foundation

extension History {
    /// Accepts an error if the app was scheduled to die; otherwise throws it.
    func expectDeath(by error: any Error) throws {
        guard death != nil else { throw error }
        appendStory("died: \(error)")
        network?.hangUp()
    }

    /// Schedules the app's death after up to 12 disk operations.
    func scheduleDeath() {
        guard death == nil else { return }
        let operations = choices.draw { $0.bool() ? 0 : $0.int(in: 1...12) }
        switch draw(0...4) {
        case 0, 1: death = .kill
        case 2, 3: death = .powerCut
        default: death = .failedSync
        }
        if death == .failedSync {
            files.failSync(from: files.operations + operations)
            choices.count("client: sync failed")
        } else {
            files.cutPower(at: files.operations + operations)
            choices.count(death == .kill ? "client: killed" : "client: power cut")
            if operations == 0 { network?.hangUp() }
        }
        appendStory("\(death.map { "\($0)" } ?? "") in \(operations) operations")
    }

    func reopen() async throws {
        network?.hangUp()
        store = nil
        files = filesAfter(death)
        death = nil
        // The server keeps its newer state when the client gets an old image.
        if !isCalm, draw(0...3) == 3, let image {
            choices.count("client: image came back")
            appendStory("an old image comes back")
            restore(from: image)
            if draw(0...1) == 1 {
                choices.count("client: backup came back")
                try copyFolder()
            }
        }
        for _ in 0..<3 where !isCalm && draw(0...5) == 5 {
            files.cutPower(at: files.operations + draw(0...20))
            let death: Death = draw(0...1) == 0 ? .kill : .powerCut
            do {
                _ = try await openStore()
            } catch {
                choices.count("client: died while opening")
                appendStory("died while opening")
            }
            files = filesAfter(death)
        }
        try await open()
    }

    /// The disk after a death; after a kill if there is none.
    func filesAfter(_ death: Death?) -> SimulatedFileSystem {
        death == .powerCut ? choices.draw { files.afterPowerCut(&$0) } : files.afterKill()
    }

    /// Replaces the disk and the model by an image. Events that it does not have count as abandoned.
    func restore(from image: Image) {
        var model = image.model
        model.abandoned = self.model.abandoned
        for event in Array(self.model.events.values) + self.model.inFlight {
            model.abandoned[event.id] = event
        }
        model.foreign = self.model.foreign
        model.shipsTicks = self.model.shipsTicks
        model.answers = self.model.answers
        self.model = model
        files = image.files.afterKill()
        folder = image.folder
    }

    /// Restores the log from a copy of its files, as a backup does: only the inodes differ.
    func copyFolder() throws {
        copies += 1
        let target = "/copy-\(copies)"
        try files.copyFolder(folder, to: target)
        folder = target
    }

    func closeAndOpen() async throws {
        choices.count("client: closed and opened")
        appendStory("close and open")
        try await requireStore().close()
        store = nil
        files = files.afterKill()
        try await open()
    }

    /// The rule of the newer version of the app, which ships events that an older one recorded.
    static let tickRule = EventRule(type: HistoryModel.tickType, action: "TICK") { _ in }

    func openStore() async throws -> OfflineStore {
        lives += 1
        if !model.shipsTicks, draw(0...7) == 7 {
            model.shipsTicks = true
            choices.count("client: upgraded")
            appendStory("the app is upgraded")
        }
        return try await OfflineStore.open(
            at: URL(filePath: folder, directoryHint: .isDirectory),
            rules: model.shipsTicks ? [Self.tickRule] : [], compaction: nil,
            environment: clock.environment(
                fileSystem: files, seed: seed &+ UInt64(lives) << 32))
    }

    func open() async throws {
        let store = try await openStore()
        self.store = store
        appendStory("opened at \(store.events.log.next)")
        let reader = LogReader(folder, fileSystem: files)
        var lines: [Event] = []
        try reader.forEachEvent(catalogue: store.events.catalogue) {
            lines.append($0)
            return true
        }
        try model.checkReopened(
            lines, next: store.events.log.next, compacted: try reader.compactedThrough())
        var folded = Outbox()
        for event in lines { folded.fold(event) }
        guard folded.entries.elementsEqual(store.view(Outbox.self).entries) else {
            throw HistoryFailure("I9: the outbox differs from a fold of the log")
        }
        network?.reconnect()
        try await check(store)
        if image == nil { takeImage() }
    }

    /// Stores the disk and the model, for a later restore.
    func takeImage() {
        image = Image(files: files.afterKill(), folder: folder, model: model)
    }
}

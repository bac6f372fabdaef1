// How a history's app dies and comes back: killed, power cut, failed sync; with what the disk holds
// then, or with an older image or copy of it. Every opening is checked. Part of History.

import DaybookOffline
import DaybookTestKit
import Foundation

extension History {
    /// An error is right only where the app was meant to die.
    func died(of error: any Error) throws {
        guard death != nil else { throw error }
        tell("dead: \(error)")
        network?.hangUp()
    }

    /// The app will die, some operations of the disk from now.
    func doom() {
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
        tell("\(death.map { "\($0)" } ?? "") in \(operations) operations")
    }

    func reopen() async throws {
        network?.hangUp()
        store = nil
        files = remains(death)
        death = nil
        // The server, too, goes on without the client.
        if !isCalm, draw(0...3) == 3, let image {
            choices.count("client: image came back")
            tell("an old image comes back")
            giveUp(for: image)
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
                tell("died while opening")
            }
            files = remains(death)
        }
        try await open()
    }

    func remains(_ death: Death?) -> SimulatedFileSystem {
        death == .powerCut ? choices.draw { files.afterPowerCut(&$0) } : files.afterKill()
    }

    func giveUp(for image: Image) {
        var model = image.model
        model.abandoned = self.model.abandoned
        for known in Array(self.model.events.values) + self.model.inFlight {
            model.abandoned[known.id] = known
        }
        model.foreign = self.model.foreign
        model.shipsTicks = self.model.shipsTicks
        model.told = self.model.told
        self.model = model
        files = image.files.afterKill()
        folder = image.folder
    }

    /// Restores the log from a copy of its files, as a backup does: all is the same but the inodes.
    func copyFolder() throws {
        copies += 1
        let target = "/copy-\(copies)"
        try files.copyFolder(folder, to: target)
        folder = target
    }

    func closeAndOpen() async throws {
        choices.count("client: closed and opened")
        tell("close and open")
        try await opened().close()
        store = nil
        files = files.afterKill()
        try await open()
    }

    /// What an older version of the app has recorded is shipped by the newer one.
    static let tickRule = EventRule(type: HistoryModel.tickType, action: "TICK") { _ in }

    func openStore() async throws -> OfflineStore {
        lives += 1
        if !model.shipsTicks, draw(0...7) == 7 {
            model.shipsTicks = true
            choices.count("client: upgraded")
            tell("the app is upgraded")
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
        tell("opened at \(store.events.log.next)")
        let reader = LogReader(folder, fileSystem: files)
        var lines: [Event] = []
        try reader.forEachEvent(catalogue: store.events.catalogue) {
            lines.append($0)
            return true
        }
        try model.reopen(
            lines, next: store.events.log.next, compacted: try reader.compactedThrough())
        var folded = Outbox()
        for event in lines { folded.fold(event) }
        guard folded.entries.elementsEqual(store.view(Outbox.self).entries) else {
            throw HistoryFailure("I9: the outbox is not what follows from the log")
        }
        network?.reconnect()
        try await check(store)
        if image == nil { takeImage() }
    }

    /// Somebody copies the disk, to put it back some day.
    func takeImage() {
        image = Image(files: files.afterKill(), folder: folder, model: model)
    }
}

// A widget appends to the log of an app, and the app absorbs it: nothing is lost, nothing counts twice, and no process
// holds a lock that another one needs. Spec/format/companions.md.

import DaybookOffline
import DaybookTestKit
import Foundation
import LogStorage
import TestSupport
import Testing

@Suite struct CompanionTests {
    private let files = SimulatedFileSystem()

    private func companion(
        _ name: String = "widget", _ files: (any FileSystem)? = nil, at url: URL = HikeLog.url,
        account: String? = nil, limits: CompanionLimits = CompanionLimits()
    ) async throws -> CompanionStore {
        try await HikeLog.companion(
            files ?? self.files, name, at: url, account: account, limits: limits)
    }

    private func spools() throws -> [CompanionSpool] { try HikeLog.spools(files) }

    @Test(.verifies("COMP-2", "COMP-6", "COMP-7"))
    func `a companion's event is in its view at once, and in the owner's once it is absorbed`()
        async throws
    {
        let owner = try await HikeLog.write(files)
        try await owner.append(Hike(path: "lake", kilometres: 3))
        let widget = try await companion()
        let new = try await widget.append(Hike(path: "lake", kilometres: 4))
        #expect(new.isNew)
        #expect(await widget.view(Hikes.self).kilometres == ["lake": 7])
        #expect(await widget.view(Outbox.self).count == 2)
        #expect(await widget.backlog.events == 1)
        #expect(owner.view(Hikes.self).kilometres == ["lake": 3])
        // A second process with the name sees it as well.
        let twin = try await companion()
        #expect(await twin.view(Hikes.self).total == 7)
        let report = try await owner.absorbCompanions()
        #expect(report.absorbed == 1 && report.deleted == 1 && report.left.isEmpty)
        #expect(owner.view(Hikes.self).kilometres == ["lake": 7])
        #expect(owner.view(Outbox.self).count == 2)
        #expect(try await owner.event(id: new.id)?.isOwn == true)
        for reader in [widget, twin] {
            #expect(await reader.view(Hikes.self).total == 7)
            try await reader.refresh()
            #expect(await reader.view(Hikes.self).total == 7)
            #expect(await reader.backlog.events == 0)
            #expect(await reader.position == Position(2))
        }
        #expect(try spools().isEmpty)
        #expect(try await owner.absorbCompanions() == AbsorptionReport())
    }

    @Test(.verifies("COMP-7"))
    func `what a spool and the log both have counts once, in every reader`() async throws {
        let owner = try await HikeLog.write(files)
        let widget = try await companion()
        for number in 1...3 { try await widget.append(Hike(path: "lake", kilometres: number)) }
        // As after a kill of the owner between its commit and the deletion of the spool.
        let folder = try #require(try spools().first)
        let reader = LogReader(
            HikeLog.url.path + "/companions/" + folder.name, fileSystem: files)
        var drafts: [EventDraft] = []
        try reader.forEachEvent(catalogue: owner.catalogue) {
            drafts.append($0.content)
            return true
        }
        try await owner.append(history: Array(drafts.prefix(2)))
        try await widget.refresh()
        #expect(await widget.view(Hikes.self).total == 6)
        #expect(await widget.backlog.events == 1)
        #expect(try await companion().view(Hikes.self).total == 6)
        let report = try await owner.absorbCompanions()
        #expect(report.absorbed == 1 && report.known == 2)
        try await widget.refresh()
        #expect(await widget.view(Hikes.self).total == 6)
        #expect(owner.view(Hikes.self).total == 6)
    }

    @Test(.verifies("COMP-3"))
    func
        `a locked spool stops no process: the companion begins another one, the owner absorbs the first one later`()
        async throws
    {
        let owner = try await HikeLog.write(files)
        let widget = try await companion()
        try await widget.append(Hike(path: "lake"))
        let first = try #require(try spools().first?.name)
        // As a process that was stopped in its commit.
        let lock = try #require(
            try files.lockDirectory(HikeLog.url.path + "/companions/" + first))
        try await widget.append(Hike(path: "lake"))
        #expect(try spools().count == 2)
        let report = try await owner.absorbCompanions()
        #expect(report.absorbed == 2 && report.busy == [first])
        try await widget.refresh()
        #expect(await widget.view(Hikes.self).total == 2)
        withExtendedLifetime(lock) {}
    }

    @Test(.verifies("COMP-5"))
    func `beyond its limits a companion refuses events and loses none`() async throws {
        let owner = try await HikeLog.write(files)
        let widget = try await companion(limits: CompanionLimits(events: 3))
        for _ in 1...3 { try await widget.append(Hike(path: "lake")) }
        await #expect(throws: CompanionFullError.self) {
            try await widget.append(Hike(path: "lake"))
        }
        #expect(await widget.view(Hikes.self).total == 3)
        try await owner.absorbCompanions()
        try await widget.append(Hike(path: "lake"))
        #expect(await widget.view(Hikes.self).total == 4)
    }

    @Test(.verifies("COMP-4"))
    func `a draft that is appended twice counts once, in a spool and in the main log`() async throws
    {
        let owner = try await HikeLog.write(files)
        let draft = try EventDraft(Hike(path: "lake"))
        try await owner.append(draft)
        let widget = try await companion()
        #expect(try await !widget.append(draft).isNew)
        let other = try EventDraft(Hike(path: "forest"))
        #expect(try await widget.append(contentsOf: [other, other]).map(\.isNew) == [true, false])
        #expect(try await !companion().append(other).isNew)
        var changed = other
        changed.data = .json(Array(#"{"path":"forest","kilometres":2}"#.utf8))
        await #expect {
            try await widget.append(changed)
        } throws: { ($0 as? EventError)?.code == .idReused }
        #expect(await widget.view(Hikes.self).total == 2)
        #expect(try await owner.absorbCompanions().absorbed == 1)
    }

    @Test(.verifies("COMP-1", "COMP-11"))
    func `names of spools are read back, and no other entry is one`() throws {
        let name = SpoolName("my-widget-2", 7, tag: 0xAB)
        #expect(name.folder == "my-widget-2-0000000007-00000000000000ab")
        #expect(SpoolName(folder: name.folder) == name)
        for other in [
            "widget", "-widget-0000000001-00000000000000ab", "Widget-0000000001-00000000000000ab",
            "widget-1-00000000000000ab", "widget-0000000001-00000000000000AB",
            "widget-+000000001-00000000000000ab", "-0000000001-00000000000000ab",
        ] { #expect(SpoolName(folder: other) == nil, "\(other)") }
    }

    @Test(.verifies("COMP-2", "COMP-3", "COMP-6", "COMP-7", "COMP-11"))
    func `an owner and three companions that interrupt each other at any call lose nothing`()
        async throws
    {
        try await Property.check(
            "companions lose nothing", runs: 60,
            covering: ["interruptions", "kills", "power cuts", "stops"]
        ) { try await CompanionSearch.run(&$0) }
    }

    @Test(.verifies("COMP-1"))
    func `a symbolic link is followed neither to the spools nor to one`() async throws {
        let folder = try TemporaryFolder()
        defer { folder.remove() }
        let (disk, log) = (POSIXFileSystem(), folder.appending("log"))
        let owner = try await HikeLog.write(disk, at: log)
        let elsewhere = folder.appending("elsewhere")
        try FileManager.default.createDirectory(
            at: elsewhere, withIntermediateDirectories: false)
        try FileManager.default.createSymbolicLink(
            at: log.appending(path: "companions"), withDestinationURL: elsewhere)
        await #expect(throws: LogError.self) {
            try await companion("widget", disk, at: log).append(Hike(path: "lake"))
        }
        await #expect(throws: LogError.self) { try await owner.absorbCompanions() }
        #expect(try FileManager.default.contentsOfDirectory(atPath: elsewhere.path).isEmpty)
        try await owner.close()
    }

    @Test(
        .verifies("COMP-2", "COMP-10"),
        .enabled(if: FileManager.default.fileExists(atPath: "/proc/locks")))
    func `an idle companion holds no lock, and its own appends cause no look`() async throws {
        let folder = try TemporaryFolder()
        defer { folder.remove() }
        let (disk, log) = (POSIXFileSystem(), folder.appending("log"))
        try await HikeLog.write(disk, at: log).close()
        let widget = try await companion("widget", disk, at: log)
        var changes = widget.changes().makeAsyncIterator()
        _ = try await changes.next()
        let before = await widget.looks
        for _ in 0..<5 { try await widget.append(Hike(path: "lake")) }
        #expect(await widget.looks == before)
        // The locks of the kernel, by the inode of each file and folder of the log.
        let locks = try String(contentsOfFile: "/proc/locks", encoding: .utf8)
        let names = try FileManager.default.subpathsOfDirectory(atPath: log.path)
        #expect(names.contains { $0.hasSuffix("/lock") })
        for name in names + [""] {
            let file = try FileManager.default.attributesOfItem(
                atPath: log.appending(path: name).path)
            let inode = try #require(file[.systemFileNumber] as? Int)
            #expect(!locks.contains(":\(inode) "), "\(name)")
        }
    }

    @Test(.verifies("COMP-12"))
    func `spools of another log or account stay as they are`() async throws {
        let owner = try await HikeLog.write(files, account: "ada")
        let widget = try await companion(account: "ada")
        try await widget.append(Hike(path: "lake"))
        await #expect(throws: LogError.self) { _ = try await companion(account: "bob") }
        let other = URL(filePath: "/other")
        let stranger = try await HikeLog.write(files, at: other, account: "bob")
        let foreign = try await companion("share", at: other)
        try await foreign.append(Hike(path: "sea"))
        try await stranger.close()
        // As a folder that was copied into the wrong log.
        let name = try #require(
            try CompanionSpool.all(
                of: other.path, environment: LogEnvironment(fileSystem: files)
            ).first?.name)
        let (from, to) = (other.path + "/companions/" + name, "/log/companions/" + name)
        try files.createDirectory(to)
        for file in try files.list(from) {
            try files.rename(from + "/" + file, to: to + "/" + file)
        }
        let report = try await owner.absorbCompanions()
        #expect(report.absorbed == 1)
        #expect(report.left.map(\.state) == [.foreign])
        // It may be of any size, and is not read for a report.
        #expect(report.left.first?.backlog == nil)
        #expect(try spools().map(\.backlog?.events) == [1])
        #expect(owner.view(Hikes.self).kilometres == ["lake": 1])
        #expect(try spools().map(\.name) == [name])
    }

    @Test(.verifies("COMP-13"))
    func `after an erasure the companion refuses and says why`() async throws {
        let owner = try await HikeLog.write(files)
        let widget = try await companion()
        try await widget.append(Hike(path: "lake"))
        // The event that waits counts as unsynced.
        await #expect(throws: UnsyncedError(count: 1)) { try await owner.erase() }
        try await widget.append(Hike(path: "lake"))
        try await owner.erase(discardingUnsynced: true)
        await #expect {
            try await widget.append(Hike(path: "lake"))
        } throws: { error in
            (error as? LogError)?.code == .noSuchLog && "\(error)".contains("was erased")
        }
        await #expect(throws: LogError.self) { try await widget.refresh() }
        let next = try await HikeLog.write(files)
        await #expect {
            try await widget.append(Hike(path: "lake"))
        } throws: { "\($0)".contains("another log") }
        #expect(next.view(Hikes.self).total == 0)
        #expect(try spools().isEmpty)
    }

    @Test(.verifies("COMP-8"))
    func `a damaged spool: its sound lines are absorbed, the damaged file is kept`() async throws {
        let owner = try await HikeLog.write(files)
        let widget = try await companion()
        for number in 1...4 { try await widget.append(Hike(path: "\(number)")) }
        let spool = try #require(try spools().first?.name)
        let path = "/log/companions/\(spool)/00000000000000000001.lz4"
        let file = try files.open(path, .readWrite)
        let size = try file.size()
        let start = SegmentHeader.encodedBytes
        try file.write([0xFF, 0xFF, 0xFF], at: start + (size - start) * 2 / 3)
        let report = try await owner.absorbCompanions()
        #expect(report.absorbed > 0 && report.absorbed < 4)
        #expect(report.quarantined > 0 && report.deleted == 1)
        #expect(try !files.list("/log/quarantine").isEmpty)
    }

    @Test(.verifies("COMP-8"))
    func `a spool with an event that the owner refuses is set aside`() async throws {
        let owner = try await HikeLog.write(files)
        let widget = try await companion()
        let draft = try EventDraft(Hike(path: "lake"))
        try await widget.append(draft)
        try await widget.append(Hike(path: "sea"))
        // The same id, with other content, at the same time.
        var other = draft
        other.data = .json(Array(#"{"path":"lake","kilometres":9}"#.utf8))
        try await owner.append(other)
        let report = try await owner.absorbCompanions()
        #expect(report.absorbed == 1 && report.refused.count == 1)
        #expect(report.left.count == 1)
        let again = try await owner.absorbCompanions()
        #expect(again.absorbed == 0 && again.left == report.left)
        // The companion continues in another spool.
        try await widget.append(Hike(path: "hill"))
        #expect(try await owner.absorbCompanions().absorbed == 1)
        #expect(owner.view(Hikes.self).total == 11)
    }

    @Test(.verifies("COMP-14"))
    func `a backup has what waits`() async throws {
        let folder = try TemporaryFolder()
        defer { folder.remove() }
        let (disk, log) = (POSIXFileSystem(), folder.appending("log"))
        let owner = try await HikeLog.write(disk, at: log)
        try await owner.append(Hike(path: "lake"))
        try await owner.close()
        try await companion("widget", disk, at: log).append(Hike(path: "sea"))
        let copy = folder.appending("copy")
        _ = try LogBackup(
            of: log.path, to: copy.path, environment: LogEnvironment(fileSystem: disk)
        ).run()
        let restored = try await HikeLog.write(disk, at: copy)
        try await eventually("hikes", is: 2) { restored.view(Hikes.self).total }
        try await restored.close()
    }

    @Test(.verifies("COMP-9", "COMP-10"))
    func `on a disk the owner absorbs when it is signalled`() async throws {
        let folder = try TemporaryFolder()
        defer { folder.remove() }
        let (disk, log) = (POSIXFileSystem(), folder.appending("log"))
        let owner = try await HikeLog.write(disk, at: log)
        // The log has had no companion: the first one is expected.
        try await owner.absorbCompanions()
        let widget = try await companion("widget", disk, at: log)
        for number in 1...20 {
            try await widget.append(Hike(path: "lake"))
            try await eventually("hikes", is: number) { owner.view(Hikes.self).total }
        }
        try await eventually("spools", is: 0) {
            try CompanionSpool.all(of: log.path).count
        }
        try await owner.suspend()
        try await widget.append(Hike(path: "lake"))
        try await owner.resume()
        try await eventually("hikes", is: 21) { owner.view(Hikes.self).total }
        try await owner.close()
    }

    @Test(.verifies("COMP-9"))
    func `calls that absorb at the same time wait for each other and end`() async throws {
        let owner = try await HikeLog.write(files)
        let widget = try await companion()
        for number in 1...3 { try await widget.append(Hike(path: "\(number)")) }
        try await withThrowingTaskGroup(of: Int.self) { group in
            for _ in 0..<8 { group.addTask { try await owner.absorbCompanions().absorbed } }
            var absorbed = 0
            for try await count in group { absorbed += count }
            #expect(absorbed == 3)
        }
        #expect(owner.view(Hikes.self).total == 3)
    }

    @Test(.verifies("COMP-13"))
    func `a spool that was set aside does not keep a log from being erased`() async throws {
        let owner = try await HikeLog.write(files)
        let draft = try EventDraft(Hike(path: "lake"))
        try await companion().append(draft)
        var other = draft
        other.data = .json(Array(#"{"path":"lake","kilometres":9}"#.utf8))
        try await owner.append(other)
        #expect(try await owner.absorbCompanions().left.count == 1)
        // Only the owner's own event counts.
        await #expect(throws: UnsyncedError(count: 1)) { try await owner.erase() }
        try await owner.erase(discardingUnsynced: true)
    }

    @Test(.verifies("COMP-13"))
    func `a spool that cannot be read keeps a log from being erased`() async throws {
        let owner = try await HikeLog.write(files)
        try await companion().append(Hike(path: "lake"))
        let spool = try #require(try spools().first)
        let path = "/log/companions/\(spool.name)"
        for name in try files.list(path) where name.hasSuffix(".lz4") {
            let file = try files.open("\(path)/\(name)", .readWrite)
            try file.write([UInt8](repeating: 0x2A, count: 10_000), at: 0)
        }
        await #expect(throws: UnsyncedError(count: 1)) { try await owner.erase() }
        try await owner.erase(discardingUnsynced: true)
    }

    @Test(.verifies("COMP-1"))
    func `a folder with the last counter hides no event`() async throws {
        let owner = try await HikeLog.write(files)
        try files.createDirectory("/log/companions")
        try files.createDirectory("/log/companions/widget-9999999999-0123456789abcdef")
        try await companion().append(Hike(path: "lake"))
        #expect(try await owner.absorbCompanions().absorbed == 1)
        try await owner.close()
    }

    @Test(.verifies("COMP-14"))
    func `a backup leaves out what is no folder of spools`() async throws {
        let folder = try TemporaryFolder()
        defer { folder.remove() }
        let (disk, log) = (POSIXFileSystem(), folder.appending("log"))
        let owner = try await HikeLog.write(disk, at: log)
        try await owner.append(Hike(path: "lake"))
        try await owner.close()
        try Data().write(to: log.appending(path: "companions"))
        let copy = folder.appending("copy")
        _ = try LogBackup(
            of: log.path, to: copy.path, environment: LogEnvironment(fileSystem: disk)
        ).run()
        let restored = try await HikeLog.write(disk, at: copy)
        #expect(restored.view(Hikes.self).total == 1)
        try await restored.close()
    }
}

// The file store: storing, reading, collection, and power cuts.

import DaybookTestKit
import Foundation
import TestSupport
import Testing

@testable import DaybookOffline

/// An event and a view of an app that name a file.
private struct PictureTaken: EventPayload, Codable {
    static let type = "com.example.picture.taken"
    var picture: String
    var file: String?
    var subject: String? { picture }
}

private struct Pictures: FileReferring {
    static let name = "pictures"
    static let version = 1
    private(set) var files: [String: FileID] = [:]

    mutating func fold(_ event: Event) {
        guard event.type == PictureTaken.type, let json = event.content.json,
            let taken = try? PictureTaken(json: json)
        else { return }
        files[taken.picture] = taken.file.flatMap(FileID.init)
    }

    func refers(to file: FileID) -> Bool { files.values.contains(file) }
}

private func open(_ files: any FileSystem) async throws -> OfflineStore {
    try await OfflineStore.open(
        at: URL(filePath: "/log"), views: [Pictures.self], compaction: nil,
        environment: LogEnvironment(fileSystem: files, sleep: noTimers))
}

private func names(_ files: any FileSystem) throws -> [String] {
    do { return try files.list("/log/files").sorted() } catch { return [] }
}

/// Stores a picture and records it.
private func storePicture(
    _ picture: String, _ content: [UInt8], _ store: OfflineStore
) async throws {
    try await store.files.store(content) { file in
        try await store.append(PictureTaken(picture: picture, file: file.description))
    }
}

@Suite struct FileStoreTests {
    @Test(.verifies("FILE-1"))
    func `a file is copied by its URL, in portions of 1 MiB, and stays`() async throws {
        let files = InMemoryFileSystem()
        let store = try await open(files)
        let content = (0..<2_500_000).map { UInt8(truncatingIfNeeded: $0 / 7) }
        files["/recording"] = content
        let id = try await store.files.store(copying: URL(filePath: "/recording")) { file in
            try await store.append(PictureTaken(picture: "a", file: file.description))
            return file
        }
        #expect(id == FileID(of: content))
        #expect(try await store.files.read(id) == content)
        #expect(files["/recording"] == content)
        #expect(try names(files) == [id.description])
        let missing = await #expect(throws: FileStoreError.self) {
            try await store.files.store(copying: URL(filePath: "/none")) { _ in }
        }
        #expect(missing?.code == .missing)
        await #expect(throws: EventError.self) {
            try await store.files.store(copying: try #require(URL(string: "https://a.example"))) {
                _ in
            }
        }
        try await store.close()
    }

    @Test(.verifies("FILE-1", "FILE-5"))
    func `stored content is read back, and equal contents are one file`() async throws {
        let files = InMemoryFileSystem()
        let store = try await open(files)
        try await storePicture("a", [1, 2, 3], store)
        try await storePicture("b", [1, 2, 3], store)
        try await storePicture("c", [], store)
        let id = FileID(of: [1, 2, 3])
        #expect(try await store.files.read(id) == [1, 2, 3])
        #expect(try await store.files.read(FileID(of: [])) == [])
        #expect(try names(files) == [id.description, FileID(of: []).description].sorted())
        #expect(store.files.path(of: id) == "/log/files/\(id)")
        try await store.close()
    }

    @Test(.verifies("FILE-5"))
    func `the error for a missing, damaged or too long file names it`() async throws {
        let files = InMemoryFileSystem()
        let store = try await open(files)
        let id = FileID(of: [1, 2, 3])
        func code() async -> FileStoreError.Code? {
            do {
                try await store.files.verify(id)
                return nil
            } catch { return (error as? FileStoreError)?.code }
        }
        #expect(await code() == .missing)
        try await storePicture("a", [1, 2, 3], store)
        #expect(await code() == nil)
        try files.open("/log/files/\(id)", .readWrite).write([9], at: 1)
        #expect(await code() == .damaged)
        await #expect { try await store.files.read(id) } throws: {
            ($0 as? FileStoreError)?.code == .damaged && "\($0)".contains("\(id)")
        }
        // Storing the content again repairs the file.
        try await storePicture("a", [1, 2, 3], store)
        #expect(await code() == nil)
        try await store.close()
    }

    @Test(.verifies("FILE-4", "FILE-6"))
    func `files that no view names are collected, unless they are retained`() async throws {
        let files = InMemoryFileSystem()
        let store = try await open(files)
        try await storePicture("a", [1], store)
        try await storePicture("b", [2], store)
        let held = try await store.files.storeRetained([3])
        _ = try files.open("/log/files/new-left", .createNew)
        _ = try files.open("/log/files/of-somebody-else", .createNew)
        try await store.append(PictureTaken(picture: "a", file: nil))
        var gone = try await store.files.collect()
        #expect(gone.files == 1)
        #expect(gone.bytes == 1)
        #expect(
            try names(files)
                == ["of-somebody-else", held.description, FileID(of: [2]).description].sorted())
        // A file that is retained twice must be released twice.
        _ = try await store.files.storeRetained([3])
        await store.files.release([held])
        #expect(try await store.files.collect().files == 0)
        await store.files.release([held])
        gone = try await store.files.collect()
        #expect(gone.files == 1)
        #expect(await store.files.retain(FileID(of: [2])))
        #expect(await !store.files.retain(held))
        try await store.close()
    }

    @Test(.verifies("FILE-6"))
    func `entries that are no files of the store do not stop a collection`() async throws {
        let files = InMemoryFileSystem()
        let store = try await open(files)
        try await storePicture("a", [1], store)
        try await store.append(PictureTaken(picture: "a", file: nil))
        let odd = String(repeating: "0", count: 64)
        try files.createDirectory("/log/files/\(odd)")
        try files.createDirectory("/log/files/new-folder")
        #expect(try await store.files.collect().files == 1)
        #expect(try names(files) == [odd, "new-folder"].sorted())
        // A tool that does not know this view does not delete its files.
        let tool = FileStore(store.events, collects: false)
        _ = try files.open("/log/files/\(FileID(of: [7]))", .createNew)
        #expect(try await tool.collect() == FileCollection())
        try await store.close()
    }

    @Test(.verifies("FILE-4", "FILE-8"))
    func `a file that was stored before a suspension has to be stored again`() async throws {
        let files = InMemoryFileSystem()
        let store = try await open(files)
        let id = try await store.files.storeRetained([1])
        try await store.files.requireRetained([id])
        try await store.suspend()
        try await store.suspend()
        let other = try await open(files)
        #expect(try await other.files.collect().files == 1)
        try await other.close()
        try await store.resume()
        await #expect {
            try await store.files.requireRetained([id])
        } throws: { ($0 as? FileStoreError)?.code == .missing }
        try await storePicture("a", [1], store)
        try await store.close()
    }

    @Test(.verifies("FILE-6"))
    func `concurrent stores and collections lose no file`() async throws {
        let files = InMemoryFileSystem()
        let store = try await open(files)
        await withTaskGroup(of: Void.self) { group in
            for number in 0..<60 {
                group.addTask {
                    let content = [UInt8(number % 7)]
                    switch number % 3 {
                    case 0: _ = try? await store.files.collect()
                    case 1: try? await storePicture("p\(number % 5)", content, store)
                    default:
                        _ = try? await store.append(
                            PictureTaken(picture: "p\(number % 5)", file: nil))
                    }
                }
            }
        }
        for file in store.view(Pictures.self).files.values { try await store.files.verify(file) }
        try await store.files.collect()
        #expect(
            try Set(names(files))
                == Set(store.view(Pictures.self).files.values.map(\.description)))
        try await store.close()
    }

    @Test(.verifies("FILE-3"))
    func `a file is moved in, or copied from another device, if its content is the right one`()
        async throws
    {
        let files = InMemoryFileSystem()
        let store = try await open(files)
        try files.createDirectory("/cache")
        for (isOtherDevice, byte) in [(false, 1), (true, 2)] as [(Bool, UInt8)] {
            let content = [UInt8](repeating: byte, count: 3_000_000)
            try files.open("/cache/part", .createNew).write(content, at: 0)
            await #expect {
                try await store.files.storeRetained(
                    moving: "/cache/part", expecting: FileID(of: [0]))
            } throws: {
                ($0 as? FileStoreError)?.code == .damaged
            }
            #expect(try files.list("/cache") == ["part"])
            if isOtherDevice {
                files.failing { operation, path in
                    operation == "rename" && path == "/cache/part"
                        ? FileError(.io, operation: operation, path: path, reason: "cross-device")
                        : nil
                }
            }
            let id = try await store.files.storeRetained(
                moving: "/cache/part", expecting: FileID(of: content))
            files.failing(nil)
            #expect(try await store.files.read(id) == content)
            #expect(try files.list("/cache") == [])
            // The file is retained once, whether it was renamed or copied.
            await store.files.release([id])
            #expect(try await store.files.collect().files == 1)
        }
        try await store.close()
    }

    @Test(.verifies("FILE-8"))
    func `a closed, suspended or erased store accepts no files and keeps none`()
        async throws
    {
        let files = InMemoryFileSystem()
        var store = try await open(files)
        try await storePicture("a", [1], store)
        try await store.suspend()
        await #expect(throws: LogError.self) { try await store.files.storeRetained([2]) }
        try await store.resume()
        try await store.close()
        await #expect(throws: LogError.self) { try await store.files.storeRetained([2]) }
        #expect(try names(files) == [FileID(of: [1]).description])
        store = try await open(files)
        try await store.cities.save("c", by: "u")
        await #expect(throws: UnsyncedError(count: 1)) { try await store.erase() }
        try await storePicture("b", [2], store)
        try await store.erase(discardingUnsynced: true)
        await #expect(throws: LogError.self) { try await store.files.storeRetained([3]) }
        #expect(try files.list("/log") == [])
    }

    @Test(.verifies("FILE-3"))
    func `a file that is too large, or for which there is no space, is refused and leaves nothing`()
        async throws
    {
        let files = InMemoryFileSystem()
        let store = try await open(files)
        try await storePicture("a", [1], store)
        files.setQuota(files.usedBytes + 1_000)
        await #expect {
            try await store.files.storeRetained([UInt8](repeating: 7, count: 100_000))
        } throws: {
            ($0 as? FileStoreError)?.code == .noSpace
        }
        #expect(try names(files) == [FileID(of: [1]).description])
        #expect(FileStore.fileBytesMax == 256 * 1_048_576)
        try await store.close()
    }

    @Test(.verifies("FILE-1"))
    func `only the owner can read files, and a folder that is a symbolic link is refused`()
        async throws
    {
        let folder = try TemporaryFolder()
        defer { folder.remove() }
        func mode(_ path: String) throws -> Int? {
            try FileManager.default.attributesOfItem(atPath: path)[.posixPermissions] as? Int
        }
        let log = folder.appending("log")
        var store = try await OfflineStore.open(at: log)
        let id = try await store.files.storeRetained([1])
        #expect(try mode(store.files.directory) == 0o700)
        #expect(try mode(store.files.path(of: id)) == 0o600)
        try await store.close()
        let elsewhere = folder.appending("elsewhere")
        try FileManager.default.moveItem(at: log.appending(path: "files"), to: elsewhere)
        try FileManager.default.createSymbolicLink(
            at: log.appending(path: "files"), withDestinationURL: elsewhere)
        store = try await OfflineStore.open(at: log)
        await #expect(throws: FileStoreError.self) { try await store.files.storeRetained([2]) }
        await #expect(throws: FileStoreError.self) { try await store.files.collect() }
        #expect(
            try FileManager.default.contentsOfDirectory(atPath: elsewhere.path)
                == [id.description])
        try await store.close()
    }
}

@Suite struct FilePowerCutTests {
    /// Stores and removes pictures. The files that the log names are checked after every crash.
    private static func work(_ store: OfflineStore) async throws {
        try await storePicture("a", [1, 1], store)
        try await storePicture("b", [2, 2], store)
        try await storePicture("a", [3, 3], store)
        try await store.files.collect()
        try await store.append(PictureTaken(picture: "b", file: nil), durability: .relaxed)
        try await store.files.collect()
        try await storePicture("b", [1, 1], store)
    }

    @Test(.verifies("FILE-3", "FILE-6", "FILE-7"))
    func `after a power cut or a kill at any operation every named file can be read`()
        async throws
    {
        let files = SimulatedFileSystem()
        let store = try await open(files)
        files.record()
        try await Self.work(store)
        let points = files.crashPoints
        #expect(points.count > 30)
        var states = 0
        for point in points {
            var machines = [point.afterKill()]
            point.forEachState(in: .init(combinationsMax: 64, samples: 16)) { machine, _ in
                machines.append(machine)
            }
            for machine in machines {
                states += 1
                let again = try await open(machine)
                for file in again.view(Pictures.self).files.values {
                    try await again.files.verify(file)
                }
                try await again.files.collect()
                let named = Set(again.view(Pictures.self).files.values.map(\.description))
                try #require(try Set(names(machine)) == named, "before \(point.next)")
                // The store stays usable.
                try await storePicture("c", [9], again)
                try await again.files.verify(FileID(of: [9]))
                try await again.close()
            }
        }
        print("\(points.count) operations, \(states) states")
        try await store.close()
    }

    @Test(.verifies("FILE-3"))
    func `a failed call keeps every named file, and the store stays usable`() async throws {
        for fault in SimulatedFault.all {
            for call in 0..<200 {
                let files = SimulatedFileSystem()
                let store = try await open(files)
                files.fail(call: files.calls + call, fault)
                do { try await Self.work(store) } catch {}
                let wasHit = files.faultsHit > 0
                files.endFaults()
                // After a failed commit it is unknown which files the log names, so this may throw.
                _ = try? await store.files.collect()
                try? await store.close()
                let again = try await open(files)
                for file in again.view(Pictures.self).files.values {
                    try await again.files.verify(file)
                }
                try await Self.work(again)
                try await again.files.collect()
                #expect(try names(files).count == 2)
                try await again.close()
                if !wasHit {
                    #expect(call > 30)
                    break
                }
            }
        }
    }
}

// The sealed file on the real file system: round trips, damage, permissions.

import DaybookSecrets
import DaybookTestKit
import Foundation
import Replay
import TestSupport
import Testing

#if canImport(Darwin)
    import Darwin
#elseif canImport(Glibc)
    import Glibc
#endif

@Suite(.serialized) struct SealedFileTests {
    static let key = [UInt8](0..<32)
    static let otherKey = [UInt8](1...32)

    let folder: TemporaryFolder
    var file: URL { folder.appending("secrets") }

    init() throws { folder = try TemporaryFolder() }

    private func store(_ key: [UInt8] = key) throws -> SealedFileSecretStore {
        try SealedFileSecretStore(file: file, key: key)
    }

    private func bytes() throws -> [UInt8] { Array(try Data(contentsOf: file)) }

    private func mode(_ name: String = "secrets") throws -> Int {
        let path = folder.appending(name).path
        let all = try FileManager.default.attributesOfItem(atPath: path)
        return try #require(all[.posixPermissions] as? Int)
    }

    private func names() throws -> [String] {
        try FileManager.default.contentsOfDirectory(atPath: folder.path).sorted()
    }

    @Test(.verifies("SEC-2", "SEC-9"))
    func `what was written is read, also by another store, until it is deleted`() async throws {
        let first = try store()
        #expect(try await first.read("token") == nil)
        try await first.delete("token")
        #expect(try names() == ["secrets.lock"])
        let all = (0..<300).map { UInt8(truncatingIfNeeded: $0) }
        try await first.write(all, for: "token")
        try await first.write([], for: "empty")
        try await first.write([1], for: String(repeating: "ü", count: 128))
        try await first.write([2], for: "token")
        try await first.write(all, for: "token")
        let second = try store()
        #expect(try await second.read("token") == all)
        #expect(try await second.read("empty") == [])
        #expect(try await second.read(String(repeating: "ü", count: 128)) == [1])
        #expect(try await second.read("Token") == nil)
        try await second.delete("token")
        #expect(try await first.read("token") == nil)
        #expect(try await first.read("empty") == [])
        #expect(try names() == ["secrets", "secrets.lock"])
    }

    @Test(.verifies("SEC-2")) func `names that are empty or too long are refused`() async throws {
        let store = try store()
        for name in ["", String(repeating: "x", count: 257), String(repeating: "ü", count: 129)] {
            for call in 0..<3 {
                let error = await #expect(throws: SecretStoreError.self) {
                    switch call {
                    case 0: _ = try await store.read(name)
                    case 1: try await store.write([1], for: name)
                    default: try await store.delete(name)
                    }
                }
                #expect(error?.code == .badName)
            }
        }
    }

    @Test(.verifies("SEC-7")) func `a key has 32 bytes`() {
        for count in [0, 16, 31, 33] {
            let error = #expect(throws: SecretStoreError.self) {
                try store([UInt8](repeating: 7, count: count))
            }
            #expect(error?.code == .badKey)
        }
    }

    @Test(.verifies("SEC-7")) func `another key opens nothing and changes nothing`() async throws {
        try await store().write([1, 2, 3], for: "token")
        let before = try bytes()
        let stranger = try store(Self.otherKey)
        let reading = await #expect(throws: SecretStoreError.self) {
            try await stranger.read("token")
        }
        let writing = await #expect(throws: SecretStoreError.self) {
            try await stranger.write([4], for: "other")
        }
        #expect(reading?.code == .wrongKey)
        #expect(writing?.code == .wrongKey)
        #expect(try bytes() == before)
        #expect(try names() == ["secrets", "secrets.lock"])
    }

    @Test(.verifies("SEC-5", "SEC-7"))
    func `every flipped bit and every cut is noticed`() async throws {
        let store = try store()
        try await store.write(Array("a secret of some length".utf8), for: "token")
        let whole = try bytes()
        for bit in 0..<whole.count * 8 {
            var damaged = whole
            damaged[bit / 8] ^= 1 << UInt8(bit % 8)
            try Data(damaged).write(to: file)
            let error = await #expect(throws: SecretStoreError.self, "bit \(bit)") {
                try await store.read("token")
            }
            // Of the version's values, only 0 is certainly damage.
            let isVersion = 64..<96 ~= bit && bit != 64
            #expect(error?.code == (isVersion ? .newerVersion : .damaged), "bit \(bit)")
        }
        for count in 0..<whole.count {
            try Data(whole[..<count]).write(to: file)
            let error = await #expect(throws: SecretStoreError.self) {
                try await store.read("token")
            }
            #expect(error?.code == .damaged, "cut to \(count)")
        }
        for longer in [whole + [0], whole + whole] {
            try Data(longer).write(to: file)
            await #expect(throws: SecretStoreError.self) { try await store.read("token") }
        }
        try Data(whole).write(to: file)
        #expect(try await store.read("token") == Array("a secret of some length".utf8))
    }

    @Test(.verifies("SEC-7")) func `a newer version is distinguished from damage`() async throws {
        let store = try store()
        try await store.write([1], for: "token")
        var bytes = try bytes()
        bytes[8] = 2
        try Data(bytes).write(to: file)
        let error = await #expect(throws: SecretStoreError.self) { try await store.read("token") }
        #expect(error?.code == .newerVersion)
    }

    @Test(.verifies("SEC-11"))
    func `an unreadable file can be deleted, and the path used again`() async throws {
        try await store().write([1], for: "token")
        let stranger = try store(Self.otherKey)
        try await stranger.deleteAll()
        #expect(try names() == ["secrets.lock"])
        #expect(try await stranger.read("token") == nil)
        try await stranger.write([2], for: "token")
        #expect(try await stranger.read("token") == [2])
        try await stranger.deleteAll()
        try await stranger.deleteAll()
    }

    @Test(.verifies("SEC-1", "SEC-5"))
    func `the file contains neither name nor value in plain text, and each write differs`()
        async throws
    {
        let store = try store()
        let secret = Array("recognisable-secret-3q2-7w".utf8)
        try await store.write(secret, for: "recognisable-name")
        let first = try bytes()
        try await store.write(secret, for: "recognisable-name")
        let second = try bytes()
        for bytes in [first, second] {
            #expect(bytes.firstRange(of: secret) == nil)
            #expect(bytes.firstRange(of: Array("recognisable-name".utf8)) == nil)
            #expect(bytes.firstRange(of: Self.key) == nil)
        }
        #expect(first.count == second.count)
        // The header is the same; the nonce and the bytes after it differ.
        #expect(first[..<28] == second[..<28])
        #expect(first[28..<40] != second[28..<40])
        #expect(first[40...] != second[40...])
    }

    @Test(.verifies("SEC-8")) func `only the owner may read, whatever the umask`() async {
        // In a separate process: the umask applies to the whole process, and other tests write files.
        await #expect(processExitsWith: .success) {
            umask(0)
            let test = try SealedFileTests()
            let store = try test.store()
            try await store.write([1], for: "token")
            try #require(try test.mode() == 0o600)
            try #require(try test.mode("secrets.lock") == 0o600)
        }
    }

    @Test(.verifies("SEC-8"), arguments: [0o666, 0o644, 0o620])
    func `a file that others may use is refused, with its mode and the cure`(
        mode: Int
    ) async throws {
        let store = try store()
        try await store.write([1], for: "token")
        try FileManager.default.setAttributes([.posixPermissions: mode], ofItemAtPath: file.path)
        let before = try bytes()
        for call in 0..<2 {
            let error = await #expect(throws: SecretStoreError.self) {
                if call == 0 { _ = try await store.read("token") }
                if call == 1 { try await store.write([2], for: "token") }
            }
            #expect(error?.code == .unsafePlace)
            let cure = "(mode \(String(mode, radix: 8))); run chmod 600 \(file.path)"
            #expect(error?.detail.contains(cure) == true)
        }
        #expect(try bytes() == before)
        try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: file.path)
        #expect(try await store.read("token") == [1])
        try FileManager.default.setAttributes([.posixPermissions: mode], ofItemAtPath: file.path)
        try await store.deleteAll()
        #expect(try await store.read("token") == nil)
    }

    @Test(.verifies("SEC-8")) func `links and folders in the file's place are refused`()
        async throws
    {
        let target = folder.appending("target")
        try await SealedFileSecretStore(file: target, key: Self.key).write([1], for: "token")
        let before = try Data(contentsOf: target)
        let store = try store()
        try FileManager.default.createSymbolicLink(at: file, withDestinationURL: target)
        for call in 0..<2 {
            let error = await #expect(throws: SecretStoreError.self) {
                if call == 0 { _ = try await store.read("token") }
                if call == 1 { try await store.write([2], for: "token") }
            }
            #expect(error?.code == .unsafePlace)
        }
        #expect(try Data(contentsOf: target) == before)
        // Only the link is removed.
        try await store.deleteAll()
        #expect(try Data(contentsOf: target) == before)
        try FileManager.default.createDirectory(at: file, withIntermediateDirectories: false)
        let error = await #expect(throws: SecretStoreError.self) {
            try await store.write([2], for: "token")
        }
        #expect(error?.code == .unsafePlace || error?.code == .io)
        // A link in place of the lock or the new file is refused, too.
        let other = folder.appending("other")
        let link = folder.appending("other.new")
        try FileManager.default.createSymbolicLink(at: link, withDestinationURL: target)
        try await SealedFileSecretStore(file: other, key: Self.key).write([3], for: "token")
        #expect(try Data(contentsOf: target) == before)
        let third = folder.appending("third")
        try FileManager.default.createSymbolicLink(
            at: folder.appending("third.lock"), withDestinationURL: target)
        let refused = await #expect(throws: SecretStoreError.self) {
            try await SealedFileSecretStore(file: third, key: Self.key).write([3], for: "token")
        }
        #expect(refused?.code == .unsafePlace)
    }

    @Test(.verifies("SEC-8")) func `a file has at most 1 MiB`() async throws {
        let store = try store()
        try await store.write([1], for: "small")
        let error = await #expect(throws: SecretStoreError.self) {
            try await store.write([UInt8](repeating: 7, count: 1024 * 1024), for: "large")
        }
        #expect(error?.code == .tooLarge)
        #expect(try await store.read("small") == [1])
        try await store.write([UInt8](repeating: 7, count: 1024 * 1024 - 200), for: "large")
        #expect(try await store.read("large")?.count == 1024 * 1024 - 200)
        try Data(repeating: 0, count: 1024 * 1024 + 1).write(to: file)
        let long = await #expect(throws: SecretStoreError.self) { try await store.read("small") }
        #expect(long?.code == .damaged)
    }

    @Test(.verifies("SEC-10"))
    func `concurrent writers lose no change`() async throws {
        let stores = try (0..<4).map { _ in try store() }
        try await withThrowingTaskGroup { group in
            for (index, store) in stores.enumerated() {
                group.addTask {
                    for number in 0..<10 {
                        // On a slow disk the others may hold the lock for longer than the timeout.
                        try await eventually("error of the write", is: nil) {
                            () async throws -> SecretStoreError.Code? in
                            do throws(SecretStoreError) {
                                try await store.write([UInt8(number)], for: "\(index)-\(number)")
                                return nil
                            } catch {
                                guard error.code == .busy else { throw error }
                                return error.code
                            }
                        }
                    }
                }
            }
            try await group.waitForAll()
        }
        let reader = try store()
        for index in 0..<4 {
            for number in 0..<10 {
                #expect(try await reader.read("\(index)-\(number)") == [UInt8(number)])
            }
        }
    }

    @Test(.verifies("SEC-10"))
    func `a lock that is not released gives an error and changes nothing`()
        async throws
    {
        try await store().write([1], for: "token")
        let lock = open(folder.appending("secrets.lock").path, O_RDWR | O_CLOEXEC)
        #expect(flock(lock, LOCK_EX | LOCK_NB) == 0)
        let error = await #expect(throws: SecretStoreError.self) {
            try await store().write([2], for: "token")
        }
        #expect(error?.code == .busy)
        #expect(try await store().read("token") == [1])
        close(lock)
        try await store().write([2], for: "token")
        #expect(try await store().read("token") == [2])
    }

    @Test(.verifies("SEC-9"))
    func `the remains of an interrupted write are replaced`() async throws {
        try await store().write([1], for: "token")
        let whole = try bytes()
        for left in [[], Array(whole[..<20]), whole, Array("anything".utf8)] {
            try Data(left).write(to: folder.appending("secrets.new"))
            #expect(try await store().read("token") == [1])
            try await store().write([1], for: "token")
            #expect(try names() == ["secrets", "secrets.lock"])
            #expect(try mode() == 0o600)
        }
    }

    @Test(.verifies("SEC-5", "SEC-6"))
    func `the file on the page is opened with its key`() async throws {
        let page = URL(filePath: #filePath).deletingLastPathComponent()
            .appending(path: "../../Spec/operations/secrets.md")
        let text = try String(contentsOf: page, encoding: .utf8)
        let blocks = text.components(separatedBy: "```hex\n").dropFirst()
        let hex = try #require(blocks.first?.components(separatedBy: "```").first)
        let digits = hex.filter(\.isHexDigit)
        let vector = stride(from: 0, to: digits.count, by: 2).compactMap { offset -> UInt8? in
            UInt8(digits.dropFirst(offset).prefix(2), radix: 16)
        }
        try Data(vector).write(to: file)
        try FileManager.default.setAttributes(
            [.posixPermissions: 0o600], ofItemAtPath: file.path)
        #expect(try await store().read("daybook.token") == Array(#"{"value":"3q2-7w"}"#.utf8))
    }
}

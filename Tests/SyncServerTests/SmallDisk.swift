// A file system of a few megabytes that a test can really fill: ext4 in a file, mounted. Needs the
// right to mount, which tests on Linux have as root.

import DaybookTestKit
import Foundation
import TestSupport
import Testing

/// A small, mounted disk.
final class SmallDisk {
    /// Why there is no disk.
    struct Failure: Error { let command: [String] }

    /// Holds the file and the place where it is mounted.
    private let base: TemporaryFolder
    /// Where it is mounted.
    var folder: URL { base.appending("disk") }
    private var filling: URL { folder.appending(path: "filling") }

    /// Whether a disk can be mounted here; without, tests that need one are left out.
    static let isPermitted: Bool = (try? SmallDisk(megabytes: 1)) != nil

    /// Makes and mounts a disk.
    init(megabytes: Int) throws {
        base = try TemporaryFolder()
        let image = base.appending("image")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: false)
        try Self.run("truncate", "-s", "\(megabytes)M", image.path)
        // Without blocks kept for the superuser, who runs the tests.
        try Self.run("mkfs.ext4", "-q", "-m", "0", image.path)
        try Self.run("mount", "-o", "loop", image.path, folder.path)
    }

    deinit {
        // A server that is still ending may hold files. What remains goes with `base`.
        try? Self.run("umount", "--lazy", folder.path)
    }

    /// Fills the disk up to its last byte.
    func fill() throws {
        let descriptor = open(filling.path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0o600)
        try #require(descriptor >= 0)
        defer { close(descriptor) }
        for count in [65_536, 1] {
            let bytes = [UInt8](repeating: 0x78, count: count)
            while write(descriptor, bytes, count) > 0 {}
        }
        #expect(errno == ENOSPC)
    }

    /// Makes room again.
    func free() throws { try FileManager.default.removeItem(at: filling) }

    static func run(_ command: String...) throws {
        let process = Process()
        process.executableURL = URL(filePath: "/usr/bin/env")
        process.arguments = command
        process.standardOutput = FileHandle.nullDevice
        process.standardError = FileHandle.nullDevice
        try process.run()
        process.waitUntilExit()
        guard process.terminationStatus == 0 else { throw Failure(command: command) }
    }
}

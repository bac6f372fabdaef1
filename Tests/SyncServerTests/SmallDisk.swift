// A file system of a few megabytes that a test can fill: ext4 in a file, mounted. Mounting requires root on
// Linux.

import DaybookTestKit
import Foundation
import TestSupport
import Testing

/// A small, mounted disk.
final class SmallDisk {
    /// The command that failed.
    struct Failure: Error { let command: [String] }

    /// The folder with the file and the mount point.
    private let base: TemporaryFolder
    /// The mount point.
    var folder: URL { base.appending("disk") }
    private var filling: URL { folder.appending(path: "filling") }

    /// Whether a disk can be mounted here; if not, tests that need one are skipped.
    static let isPermitted: Bool = (try? SmallDisk(megabytes: 1)) != nil

    /// Creates and mounts a disk.
    init(megabytes: Int) throws {
        base = try TemporaryFolder()
        let image = base.appending("image")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: false)
        try Self.run("truncate", "-s", "\(megabytes)M", image.path)
        // Without blocks reserved for root, who runs the tests.
        try Self.run("mkfs.ext4", "-q", "-m", "0", image.path)
        try Self.run("mount", "-o", "loop", image.path, folder.path)
    }

    deinit {
        // A server that is still ending may hold files open; they are removed with `base`.
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

    /// Mounts the disk again, read-only or writable.
    func setWritable(_ isWritable: Bool) throws {
        try Self.run("mount", "-o", isWritable ? "remount,rw" : "remount,ro", folder.path)
    }

    /// Frees the space again.
    func free() throws { try FileManager.default.removeItem(at: filling) }

    static func run(_ command: String...) throws {
        let process = Process()
        process.executableURL = URL(filePath: "/usr/bin/env")
        process.arguments = command
        process.standardOutput = FileHandle.nullDevice
        process.standardError = FileHandle.nullDevice
        try process.runAlone()
        process.waitUntilExit()
        guard process.terminationStatus == 0 else { throw Failure(command: command) }
    }
}

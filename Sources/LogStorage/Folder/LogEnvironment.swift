// The external dependencies of a log, injected so that a test controls clock, randomness and disk.

import LogFormat

#if canImport(Darwin)
    import Darwin
#elseif canImport(Musl)
    import Musl
#else
    import Glibc
#endif

/// File system, clock, randomness and waiting.
public struct LogEnvironment: Sendable {
    /// The file system that stores the log.
    public var fileSystem: any FileSystem
    /// The time, in milliseconds since 1970.
    public var now: @Sendable () -> Int64
    /// 128 random bits.
    public var random: @Sendable () -> UInt128
    /// Waits for a duration. If it throws, the caller gives up the work that it delayed.
    public var sleep: @Sendable (Duration) async throws -> Void
    /// The sizes that a writer chooses.
    package var sizes = WriterSizes()

    /// Creates an environment.
    public init(
        fileSystem: any FileSystem = POSIXFileSystem(),
        now: @escaping @Sendable () -> Int64 = LogEnvironment.systemTime,
        random: @escaping @Sendable () -> UInt128 = { .random(in: .min ... .max) },
        sleep: @escaping @Sendable (Duration) async throws -> Void = {
            try await Task.sleep(for: $0)
        }
    ) {
        self.fileSystem = fileSystem
        self.now = now
        self.random = random
        self.sleep = sleep
    }

    /// The system's clock, in milliseconds since 1970.
    public static func systemTime() -> Int64 {
        var time = timespec()
        clock_gettime(CLOCK_REALTIME, &time)
        return Int64(time.tv_sec) * 1_000 + Int64(time.tv_nsec) / 1_000_000
    }

    /// A random UUID of version 4 (RFC 9562).
    package func randomUUID() -> UInt128 {
        let mask: UInt128 = 0xF000 << 64 | 0xC000 << 48
        let version: UInt128 = 0x4000 << 64 | 0x8000 << 48
        return random() & ~mask | version
    }
}

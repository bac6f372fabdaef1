// Signals of the system that another process has changed a log's folder: inotify on Linux. The process that writes does
// nothing for them. A signal only says "look"; the receiver compares positions. Spec/format/companions.md, COMP-10.

import LogStorage
import Synchronization

/// Signals that files in folders were written, for one receiver.
final class FolderWatch: Sendable {
    /// A signal at once, and after changes. Signals that are not consumed are merged into one.
    let signals: AsyncStream<Void>
    private let continuation: AsyncStream<Void>.Continuation

    /// Creates a watch of no folder; nil where the system has no signals for folders.
    init?() {
        #if os(Linux)
            (signals, continuation) = AsyncStream.makeStream(bufferingPolicy: .bufferingNewest(1))
            continuation.yield()
        #else
            return nil
        #endif
    }

    deinit { end() }

    /// Yields a signal.
    func signal() { continuation.yield() }

    /// Ends the signals and the watching of all folders.
    func end() {
        continuation.finish()
        #if os(Linux)
            Inotify.shared?.remove(ObjectIdentifier(self))
        #endif
    }

    /// Watches the spools of a log, for its owner: the folder `companions`, or its creation, and each spool in it.
    func follow(_ folder: SpoolFolder) {
        #if os(Linux)
            // Creations first, so that a spool that is created meanwhile is listed or signalled.
            watch(folder.main, .creations) { $0 == LogDirectory.companions }
            watch(folder.path, .creations) { SpoolName(folder: $0) != nil }
            for spool in (try? folder.list()) ?? [] {
                // Not the lock, which this process opens as well.
                watch(folder.path(of: spool), .closedWrites) { $0.hasSuffix(".lz4") }
            }
        #endif
    }

    /// Watches the requests for a log, for its owner.
    func followRequests(for main: String) {
        #if os(Linux)
            watch(main, .closedWrites) { $0 == LogDirectory.handover }
        #endif
    }

    /// Watches the segments of a log, for a companion.
    func followSegments(of main: String) {
        #if os(Linux)
            watch(main, .writes) { $0.hasSuffix(".lz4") || $0.hasPrefix("erasing") }
        #endif
    }

    #if os(Linux)
        private func watch(
            _ path: String, _ events: Inotify.Events,
            _ concerns: @escaping @Sendable (String) -> Bool
        ) {
            Inotify.shared?.watch(path, events, for: ObjectIdentifier(self)) {
                [continuation] name in
                if name.map(concerns) ?? true { continuation.yield() }
            }
        }
    #endif
}

#if os(Linux)
    #if canImport(Musl)
        import Musl
    #else
        import Glibc
    #endif
    import Dispatch

    /// The process's one inotify instance: a user may have only 128 by default. It waits without a timer and without a
    /// thread. inotify(7).
    private final class Inotify: Sendable {
        struct Events: OptionSet {
            let rawValue: UInt32
            /// IN_CREATE, IN_MOVED_TO.
            static let creations = Events(rawValue: 0x100 | 0x80)
            /// IN_CLOSE_WRITE.
            static let closedWrites = Events(rawValue: 0x8)
            /// IN_MODIFY, IN_CREATE, IN_MOVED_TO, IN_DELETE_SELF.
            static let writes = Events(rawValue: 0x2 | 0x100 | 0x80 | 0x400)
        }

        typealias Receiver = @Sendable (_ name: String?) -> Void

        /// IN_MASK_ADD, IN_ONLYDIR, IN_Q_OVERFLOW, IN_IGNORED.
        private static let (maskAdd, onlyFolders): (UInt32, UInt32) = (0x2000_0000, 0x0100_0000)
        private static let (overflow, ignored): (UInt32, UInt32) = (0x4000, 0x8000)
        /// The bytes of `struct inotify_event` before the name.
        private static let headBytes = 16

        static let shared = Inotify()

        private struct Watched {
            var receivers: [ObjectIdentifier: (events: UInt32, receive: Receiver)] = [:]
        }

        private let descriptor: Int32
        // Set once, before another thread has the instance.
        nonisolated(unsafe) private let source: any DispatchSourceRead
        private let watched = Mutex<[Int32: Watched]>([:])

        private init?() {
            descriptor = inotify_init1(Int32(IN_NONBLOCK | IN_CLOEXEC))
            guard descriptor >= 0 else { return nil }
            source = DispatchSource.makeReadSource(
                fileDescriptor: descriptor, queue: DispatchQueue(label: "daybook.watch"))
            source.setEventHandler { [weak self] in self?.drain() }
            source.resume()
        }

        /// Watches a folder for a receiver. Does nothing if the folder cannot be watched: the next look is then
        /// as late as without signals.
        func watch(
            _ path: String, _ events: Events, for owner: ObjectIdentifier,
            _ receive: @escaping Receiver
        ) {
            watched.withLock { watched in
                let number = inotify_add_watch(
                    descriptor, path, events.rawValue | Self.maskAdd | Self.onlyFolders)
                guard number >= 0 else { return }
                watched[number, default: Watched()].receivers[owner] = (events.rawValue, receive)
            }
        }

        /// Removes a receiver from all folders.
        func remove(_ owner: ObjectIdentifier) {
            watched.withLock { watched in
                for number in watched.keys {
                    watched[number]?.receivers[owner] = nil
                    guard watched[number]?.receivers.isEmpty ?? false else { continue }
                    watched[number] = nil
                    inotify_rm_watch(descriptor, number)
                }
            }
        }

        private func drain() {
            var buffer = [UInt8](repeating: 0, count: 16_384)
            while true {
                let count = buffer.withUnsafeMutableBytes {
                    read(descriptor, $0.baseAddress, $0.count)
                }
                guard count > 0 else { return }
                deliver(buffer[..<count])
            }
        }

        private func deliver(_ bytes: ArraySlice<UInt8>) {
            var calls: [(Receiver, String?)] = []
            watched.withLock { watched in
                var at = bytes.startIndex
                while at + Self.headBytes <= bytes.endIndex {
                    func number(_ offset: Int) -> UInt32 {
                        bytes[(at + offset)..<(at + offset + 4)].reversed()
                            .reduce(0) { $0 << 8 | UInt32($1) }
                    }
                    let (folder, mask, length) = (
                        Int32(bitPattern: number(0)), number(4), Int(number(12))
                    )
                    let end = at + Self.headBytes + length
                    guard end <= bytes.endIndex else { return }
                    let name = bytes[(at + Self.headBytes)..<end].prefix { $0 != 0 }
                    at = end
                    // Lost events concern every receiver.
                    let found =
                        mask & Self.overflow != 0
                        ? Array(watched.values) : [watched[folder]].compactMap(\.self)
                    for (events, receive) in found.flatMap(\.receivers.values)
                    where mask & (events | Self.overflow) != 0 {
                        calls.append(
                            (receive, name.isEmpty ? nil : String(decoding: name, as: UTF8.self)))
                    }
                    if mask & Self.ignored != 0 { watched[folder] = nil }
                }
            }
            for (receive, name) in calls { receive(name) }
        }
    }
#endif

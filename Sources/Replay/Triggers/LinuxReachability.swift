// The state of the network on Linux: netlink messages announce changes of routes, addresses and interfaces;
// the files in /proc and /sys have the state. Spec/protocol/triggers.md, COND-5.

#if os(Linux)
    import Foundation
    import Glibc
    import Synchronization

    /// The network's state according to the kernel: connected if a default route leads out of the machine,
    /// metered if the route's interface is a modem. A metered Wi-Fi, such as a phone's hotspot, is reported
    /// as unmetered, and a machine without a default route as not connected, even if the server runs on it:
    /// for these cases an app brings its own `Reachability`.
    ///
    /// Waits without a timer and without a thread. If no netlink socket can be opened, the path stays as it
    /// is when an iteration begins.
    public struct SystemReachability: Reachability {
        /// Creates the source.
        public init() {}

        public var paths: AsyncStream<NetworkPath> {
            AsyncStream(bufferingPolicy: .bufferingNewest(1)) { continuation in
                let monitor = RouteMonitor { continuation.yield($0) }
                continuation.onTermination = { _ in monitor.cancel() }
                monitor.start()
            }
        }
    }

    /// Reports the present path, and each new one after a change in the kernel's tables.
    private final class RouteMonitor: Sendable {
        /// The wait between a message and the read of the state: one change causes many messages.
        private static let settling = DispatchTimeInterval.milliseconds(200)

        private let report: @Sendable (NetworkPath) -> Void
        private let queue = DispatchQueue(label: "daybook.reachability")
        private struct State {
            var source: (any DispatchSourceRead)?
            var path: NetworkPath?
            var isReadScheduled = false
            var isCancelled = false
        }
        // Accessed on the queue only.
        nonisolated(unsafe) private var state = State()

        init(_ report: @escaping @Sendable (NetworkPath) -> Void) { self.report = report }

        func start() {
            queue.async { [self] in
                guard !state.isCancelled else { return }
                // Before the first read of the state, so that no change is missed.
                if let socket = Self.open() { listen(to: socket) }
                readPath()
            }
        }

        func cancel() {
            queue.async { [self] in
                state.isCancelled = true
                state.source?.cancel()
                state.source = nil
            }
        }

        /// Opens a socket for the kernel's messages on interfaces, addresses and routes; nil if it cannot be
        /// opened. rtnetlink(7).
        private static func open() -> Int32? {
            let routes: Int32 = 0  // NETLINK_ROUTE
            let flags = Int32(SOCK_RAW.rawValue | SOCK_CLOEXEC.rawValue | SOCK_NONBLOCK.rawValue)
            let socket = socket(AF_NETLINK, flags, routes)
            guard socket >= 0 else { return nil }
            // RTMGRP_LINK, _IPV4_IFADDR, _IPV4_ROUTE, _IPV6_IFADDR, _IPV6_ROUTE.
            let groups: UInt32 = 0x1 | 0x10 | 0x40 | 0x100 | 0x400
            // struct sockaddr_nl: family, padding, port id (the kernel's choice), groups.
            var address: (UInt16, UInt16, UInt32, UInt32) = (UInt16(AF_NETLINK), 0, 0, groups)
            let size = socklen_t(MemoryLayout.size(ofValue: address))
            let isBound = withUnsafePointer(to: &address) {
                $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { bind(socket, $0, size) == 0 }
            }
            guard isBound else {
                close(socket)
                return nil
            }
            return socket
        }

        private func listen(to socket: Int32) {
            let source = DispatchSource.makeReadSource(fileDescriptor: socket, queue: queue)
            source.setEventHandler { [weak self] in
                var piece = [UInt8](repeating: 0, count: 16_384)
                // The content of the messages is not needed: the state is read from the kernel's files.
                // ENOBUFS means lost messages, so it counts as a change.
                while recv(socket, &piece, piece.count, 0) > 0 || errno == ENOBUFS {}
                self?.scheduleRead()
            }
            source.setCancelHandler { close(socket) }
            state.source = source
            source.resume()
        }

        private func scheduleRead() {
            guard !state.isReadScheduled else { return }
            state.isReadScheduled = true
            queue.asyncAfter(deadline: .now() + Self.settling) { [weak self] in
                self?.state.isReadScheduled = false
                self?.readPath()
            }
        }

        private func readPath() {
            let path = LinuxNetwork().path
            guard path != state.path, !state.isCancelled else { return }
            state.path = path
            report(path)
        }
    }

    /// The default routes of this machine, read from the kernel's files.
    struct LinuxNetwork {
        /// The prefix of `/proc` and `/sys`. Tests set another.
        var root = ""

        /// The path of the default route with the least metric that is not a tunnel's: the network below a
        /// tunnel decides whether it is metered.
        var path: NetworkPath {
            let routes = defaultRoutes.sorted { $0.metric < $1.metric }.map(\.interface)
                .filter(isUp)
            guard let route = routes.first(where: { !isTunnel($0) }) ?? routes.first else {
                return .none
            }
            return isModem(route) ? .cellular : .wifi
        }

        private struct Route {
            var interface: String
            var metric: UInt32
        }

        /// The flags RTF_UP and RTF_REJECT of a route. linux/route.h.
        private static let (isUsable, isRefusing): (UInt32, UInt32) = (0x1, 0x200)

        private var defaultRoutes: [Route] {
            // Iface Destination Gateway Flags RefCnt Use Metric Mask …
            let four = lines("/proc/net/route").compactMap { fields -> Route? in
                guard fields.count >= 8, fields[1] == "00000000", fields[7] == "00000000",
                    let flags = UInt32(fields[3], radix: 16), let metric = UInt32(fields[6])
                else { return nil }
                return Self.route(String(fields[0]), flags, metric)
            }
            // Destination length source length next-hop metric references uses flags interface
            let six = lines("/proc/net/ipv6_route").compactMap { fields -> Route? in
                guard fields.count >= 10, fields[0].allSatisfy({ $0 == "0" }), fields[1] == "00",
                    let metric = UInt32(fields[5], radix: 16),
                    let flags = UInt32(fields[8], radix: 16)
                else { return nil }
                return Self.route(String(fields[9]), flags, metric)
            }
            return four + six
        }

        private static func route(_ interface: String, _ flags: UInt32, _ metric: UInt32) -> Route?
        {
            guard flags & isUsable != 0, flags & isRefusing == 0, interface != "lo" else {
                return nil
            }
            return Route(interface: interface, metric: metric)
        }

        /// Whether the interface is up, or does not report its state. A route of an interface that is down is
        /// not usable.
        private func isUp(_ interface: String) -> Bool {
            ["up", "unknown", ""].contains(
                text("/sys/class/net/\(interface)/operstate")
                    .trimmingCharacters(in: .whitespacesAndNewlines))
        }

        private func isTunnel(_ interface: String) -> Bool {
            FileManager.default.fileExists(atPath: root + "/sys/class/net/\(interface)/tun_flags")
                || deviceType(interface) == "wireguard"
        }

        private func isModem(_ interface: String) -> Bool {
            deviceType(interface) == "wwan"
                || ["wwan", "ppp", "rmnet", "ccmni"].contains { interface.hasPrefix($0) }
        }

        private func deviceType(_ interface: String) -> String? {
            text("/sys/class/net/\(interface)/uevent").split(separator: "\n")
                .first { $0.hasPrefix("DEVTYPE=") }.map { String($0.dropFirst("DEVTYPE=".count)) }
        }

        private func lines(_ path: String) -> [[Substring]] {
            text(path).split(separator: "\n").map { line in
                line.split(whereSeparator: { $0 == " " || $0 == "\t" })
            }
        }

        /// The content of one of the kernel's files; empty if it cannot be read.
        private func text(_ path: String) -> String {
            // The kernel reports a length of 0, so the file is read to its end.
            guard let file = FileHandle(forReadingAtPath: root + path),
                let data = try? file.readToEnd()
            else { return "" }
            return String(decoding: data, as: UTF8.self)
        }
    }
#endif

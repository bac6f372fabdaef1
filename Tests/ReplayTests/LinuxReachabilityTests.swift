// The network's state on Linux: from simulated files of the kernel, and from real routes that are added and
// removed in a network namespace of the test. Spec/protocol/triggers.md, COND-5.

#if os(Linux)
    import DaybookTestKit
    import Foundation
    import Synchronization
    import TestSupport
    import Testing

    @testable import Replay

    /// A folder with `/proc` and `/sys` as a kernel would have them.
    private struct Kernel {
        private let root: TemporaryFolder
        var path: NetworkPath { LinuxNetwork(root: root.path).path }

        init() throws { root = try TemporaryFolder() }

        func write(_ path: String, _ text: String) throws {
            let url = root.appending(path)
            try FileManager.default.createDirectory(
                at: url.deletingLastPathComponent(), withIntermediateDirectories: true)
            try Data(text.utf8).write(to: url)
        }

        /// An interface; `type` is what `uevent` calls it.
        func add(_ interface: String, type: String? = nil, state: String = "up") throws {
            let folder = "sys/class/net/\(interface)"
            try write("\(folder)/operstate", state + "\n")
            try write(
                "\(folder)/uevent",
                (type.map { "DEVTYPE=\($0)\n" } ?? "") + "INTERFACE=\(interface)\nIFINDEX=2\n")
        }

        /// Routes of version 4; those with a metric are default routes.
        func route(_ routes: [(interface: String, metric: Int?)], flags: String = "0003") throws {
            var text = "Iface\tDestination\tGateway\tFlags\tRefCnt\tUse\tMetric\tMask\tMTU\n"
            for (interface, metric) in routes {
                text +=
                    metric.map {
                        "\(interface)\t00000000\t010200C0\t\(flags)\t0\t0\t\($0)\t00000000\t0\n"
                    } ?? "\(interface)\t000200C0\t00000000\t0001\t0\t0\t0\t00FFFFFF\t0\n"
            }
            try write("proc/net/route", text)
        }
    }

    @Suite(.verifies("COND-5")) struct LinuxReachabilityTests {
        @Test func `a modem is metered; Wi-Fi, a cable and a bridge are not`() throws {
            for (interface, type, path) in [
                ("wlan0", "wlan", NetworkPath.wifi), ("eth0", nil, .wifi), ("br0", "bridge", .wifi),
                ("wwan0", nil, .cellular), ("enx5", "wwan", .cellular), ("ppp0", "ppp", .cellular),
            ] as [(String, String?, NetworkPath)] {
                let kernel = try Kernel()
                try kernel.add(interface, type: type)
                try kernel.route([(interface, 100), (interface, nil)])
                #expect(kernel.path == path, "\(interface)")
            }
        }

        @Test func `without a default route there is no network, nor with one that leads nowhere`()
            throws
        {
            let kernel = try Kernel()
            #expect(kernel.path == .none)
            try kernel.add("eth0")
            try kernel.route([("eth0", nil)])
            #expect(kernel.path == .none)
            // Unreachable, and not up.
            try kernel.route([("eth0", 0)], flags: "0203")
            #expect(kernel.path == .none)
            try kernel.route([("eth0", 0)], flags: "0002")
            #expect(kernel.path == .none)
            try kernel.route([("eth0", 0)])
            #expect(kernel.path == .wifi)
            try kernel.add("eth0", state: "down")
            #expect(kernel.path == .none)
            try kernel.add("eth0", state: "unknown")
            #expect(kernel.path == .wifi)
        }

        @Test func `the route with the least metric counts, and for a tunnel the network below it`()
            throws
        {
            let kernel = try Kernel()
            for (interface, type) in [("wwan0", "wwan"), ("wlan0", "wlan"), ("wg0", "wireguard")] {
                try kernel.add(interface, type: type)
            }
            try kernel.add("tun0")
            try kernel.write("sys/class/net/tun0/tun_flags", "0x1001\n")
            try kernel.route([("wwan0", 700), ("wlan0", 600)])
            #expect(kernel.path == .wifi)
            try kernel.route([("wwan0", 50), ("wlan0", 600)])
            #expect(kernel.path == .cellular)
            for tunnel in ["tun0", "wg0"] {
                try kernel.route([(tunnel, 1), ("wwan0", 700)])
                #expect(kernel.path == .cellular, "\(tunnel)")
                // The network below the tunnel is unknown.
                try kernel.route([(tunnel, 1)])
                #expect(kernel.path == .wifi, "\(tunnel)")
            }
        }

        @Test func `an IPv6 default route counts, too`() throws {
            let kernel = try Kernel()
            try kernel.add("wwan0", type: "wwan")
            let zeros = String(repeating: "0", count: 32)
            func line(_ destination: String, _ length: String, _ flags: String, _ name: String)
                -> String
            {
                "\(destination) \(length) \(zeros) 00 \(zeros) 00000400 00000001 00000000 \(flags)"
                    + "     \(name)\n"
            }
            // The kernel's reject route, and a route to one network.
            let others =
                line(zeros, "00", "00200200", "lo")
                + line("fe80" + zeros.dropFirst(4), "40", "00000001", "wwan0")
            try kernel.write("proc/net/ipv6_route", others)
            #expect(kernel.path == .none)
            try kernel.write("proc/net/ipv6_route", others + line(zeros, "00", "00000003", "wwan0"))
            #expect(kernel.path == .cellular)
        }

        @Test func `missing and malformed files mean no network`() throws {
            let kernel = try Kernel()
            for text in [
                "", "\n\n", "eth0", "a b c d e f g h i j k", "\u{0}\u{FFFD}", "eth0\t00000000",
            ] {
                try kernel.write("proc/net/route", text)
                try kernel.write("proc/net/ipv6_route", text)
                #expect(kernel.path == .none)
            }
        }

        /// True in a network namespace of its own, where routes can be changed. Spec/testing/testing.md has
        /// the command.
        private static let isAlone =
            ProcessInfo.processInfo.environment["DAYBOOK_OWN_NETWORK"] != nil

        private func ip(_ arguments: String) throws {
            let process = Process()
            process.executableURL = URL(filePath: "/usr/bin/env")
            process.arguments = ["ip"] + arguments.split(separator: " ").map(String.init)
            try process.runAlone()
            process.waitUntilExit()
            try #require(process.terminationStatus == 0, "ip \(arguments)")
        }

        @Test(.enabled(if: isAlone))
        func `a route that appears or disappears is reported without a timer`()
            async throws
        {
            let seen = Mutex<[NetworkPath]>([])
            let listening = Task {
                for await path in SystemReachability().paths { seen.withLock { $0.append(path) } }
            }
            try await eventually("paths", is: [NetworkPath.none]) { seen.withLock { $0 } }
            try ip("link add wire0 type veth peer name wire1")
            try ip("link set wire1 up")
            try ip("addr add 192.0.2.2/24 dev wire0")
            try ip("link set wire0 up")
            try ip("route add default via 192.0.2.1")
            try await eventually("paths", is: [NetworkPath.none, .wifi]) { seen.withLock { $0 } }
            try ip("link add wwan0 type veth peer name wwan1")
            try ip("link set wwan1 up")
            try ip("link set wwan0 up")
            try ip("route add default dev wwan0 metric 5")
            try ip("link set wire0 down")
            try await eventually("last path", is: Optional(NetworkPath.cellular)) {
                seen.withLock { $0.last }
            }
            try ip("link del wwan0")
            try await eventually("last path", is: Optional(NetworkPath.none)) {
                seen.withLock { $0.last }
            }
            listening.cancel()
        }

        @Test
        func `the system's path is reported at once, and a listener that ends leaves no socket`()
            async throws
        {
            /// The number of sockets with our groups, from the kernel's list.
            func sockets() throws -> Int {
                try String(contentsOf: URL(filePath: "/proc/net/netlink"), encoding: .utf8)
                    .split(separator: "\n").count { $0.contains(" 00000551 ") }
            }
            let path = LinuxNetwork().path
            for _ in 0..<20 {
                for await first in SystemReachability().paths {
                    #expect(first == path)
                    break
                }
            }
            for await _ in SystemReachability().paths {
                #expect(try sockets() >= 1)
                break
            }
            try await eventually("netlink sockets", is: 0) { try sockets() }
        }
    }
#endif

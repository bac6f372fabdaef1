// Each fault of the proxy has the effect that its name says, with a server that returns the bytes that it
// gets.

import DaybookTestKit
import Foundation
import Synchronization
import TestSupport
import Testing

@Suite(.serialized) struct HostileProxyTests {
    private static let body = #"[{"specversion":"1.0","id":"0f8fad5b"}]"#

    private static func proxy(
        _ server: EchoServer, _ faults: [ProxyFault], delay: Int = 100
    ) throws -> HostileProxy {
        var options = HostileProxy.Options()
        (options.faults, options.oneIn, options.refusedOneIn) = (faults, 1, 1)
        options.endsInHeaders = true
        options.delayMilliseconds = delay
        return try HostileProxy(to: server.port, seed: 11, options: options)
    }

    @Test func `without faults requests and replies are forwarded unchanged, on one connection`()
        throws
    {
        let server = try EchoServer()
        let proxy = try Self.proxy(server, [])
        var client = try EchoClient(proxy.port)
        let long = String(repeating: "daybook ", count: 200_000)
        for body in [Self.body, "", long] { #expect(try client.exchange(body) == body) }
        #expect(server.received == [Self.body, "", long])
        #expect(proxy.counts == ["proxy: connections": 1, "proxy: requests": 3])
        proxy.stop()
    }

    @Test func `a connection is refused, and later ones are accepted at the same port`()
        async throws
    {
        let server = try EchoServer()
        let proxy = try Self.proxy(server, [.connectionRefused])
        #expect(throws: (any Error).self) {
            var client = try EchoClient(proxy.port)
            _ = try client.exchange(Self.body)
        }
        #expect(proxy.count(of: .connectionRefused) == 1)
        #expect(server.received.isEmpty)
        proxy.calm()
        func reply() -> String {
            guard var client = try? EchoClient(proxy.port) else { return "no connection" }
            return (try? client.exchange(Self.body)) ?? "no reply"
        }
        try await eventually("reply", is: Self.body) { reply() }
        proxy.stop()
    }

    @Test func `a connection that breaks before or in the request delivers no request`()
        async throws
    {
        for fault in [ProxyFault.cutBeforeRequest, .cutInRequest] {
            let server = try EchoServer()
            let proxy = try Self.proxy(server, [fault])
            for _ in 0..<20 {
                #expect(throws: (any Error).self) {
                    var client = try EchoClient(proxy.port)
                    _ = try client.exchange(Self.body)
                }
            }
            #expect(proxy.count(of: fault) == 20)
            #expect(server.received.isEmpty)
            let broken = fault == .cutInRequest ? 20 : 0
            // A part of the request arrives, or, if the connection breaks before it, nothing.
            try await eventually("broken connections", is: broken) { server.broken }
            proxy.stop()
        }
    }

    @Test func `a connection breaks anywhere in the reply, after the server has got the request`()
        throws
    {
        let server = try EchoServer()
        let proxy = try Self.proxy(server, [.replyCut])
        var lengths: Set<Int> = []
        for _ in 0..<40 {
            var client = try EchoClient(proxy.port)
            #expect(throws: (any Error).self) { _ = try client.exchange(Self.body) }
            lengths.insert(client.readBytes)
        }
        #expect(server.received == Array(repeating: Self.body, count: 40))
        #expect(proxy.count(of: .replyCut) == 40)
        #expect(lengths.count > 5, "cut at \(lengths.sorted())")
        proxy.stop()
    }

    @Test func `a truncated reply looks complete, and a corrupted one has zeros`() throws {
        let server = try EchoServer()
        for fault in [ProxyFault.replyTruncated, .replyCorrupted] {
            let proxy = try Self.proxy(server, [fault])
            var client = try EchoClient(proxy.port)
            for _ in 0..<20 {
                let reply = try client.exchange(Self.body)
                #expect(reply != Self.body)
                #expect(fault == .replyCorrupted || Self.body.hasPrefix(reply))
                #expect(reply.contains("\0") == (fault == .replyCorrupted))
                #expect(
                    throws: (any Error).self,
                    performing: {
                        try JSONSerialization.jsonObject(with: Data(reply.utf8))
                    })
            }
            #expect(proxy.count(of: fault) == 20)
            proxy.stop()
        }
        #expect(server.received == Array(repeating: Self.body, count: 40))
    }

    @Test func `a corrupted request has zeros`() throws {
        let server = try EchoServer()
        let proxy = try Self.proxy(server, [.requestCorrupted])
        var client = try EchoClient(proxy.port)
        #expect(try client.exchange(Self.body).contains("\0"))
        #expect(try client.exchange("").isEmpty)
        #expect(server.received.map { $0.contains("\0") } == [true, false])
        #expect(proxy.count(of: .requestCorrupted) == 1)
        proxy.stop()
    }

    @Test func `a copy of a request arrives later`() async throws {
        let server = try EchoServer()
        let proxy = try Self.proxy(server, [.requestDoubled], delay: 200)
        var client = try EchoClient(proxy.port)
        for number in 0..<5 {
            let body = "\(number)"
            #expect(try client.exchange(body) == body)
        }
        try await eventually("copies to deliver", is: 0) { proxy.held }
        #expect(proxy.count(of: .requestDoubled) == 5)
        #expect(server.received.sorted() == (0..<5).flatMap { ["\($0)", "\($0)"] })
        proxy.stop()
    }

    @Test func `a request is overtaken by a later one`() async throws {
        let server = try EchoServer()
        var options = HostileProxy.Options()
        (options.faults, options.oneIn) = ([.requestOvertaken], 2)
        options.delayMilliseconds = 60_000
        let proxy = try HostileProxy(to: server.port, seed: 11, options: options)
        let answered = Mutex<Set<Int>>([])
        for number in 0..<10 {
            Thread.detachNewThread {
                var client = try? EchoClient(proxy.port)
                guard (try? client?.exchange("\(number)")) == "\(number)" else { return }
                answered.withLock { _ = $0.insert(number) }
            }
            try await eventually("requests", is: number + 1) {
                proxy.counts["proxy: requests"] ?? 0
            }
        }
        proxy.calm()
        try await eventually("answered requests", is: 10) { answered.withLock { $0.count } }
        #expect(server.received.sorted() == (0..<10).map { "\($0)" })
        #expect(server.received != server.received.sorted())
        #expect(proxy.count(of: .requestOvertaken) > 0)
        proxy.stop()
    }

    @Test func `a reply is delayed`() throws {
        let server = try EchoServer()
        let proxy = try Self.proxy(server, [.replyDelayed], delay: 400)
        var client = try EchoClient(proxy.port)
        // In real time, as the delays of the proxy; a busy machine only makes them longer.
        let begun = ContinuousClock.now
        for _ in 0..<5 { #expect(try client.exchange(Self.body) == Self.body) }
        #expect(ContinuousClock.now - begun > .milliseconds(100))
        #expect(proxy.count(of: .replyDelayed) == 5)
        proxy.stop()
    }

    @Test func `the same seed gives the same faults to the same connection`() throws {
        func faults(seed: UInt64) throws -> [String] {
            let server = try EchoServer()
            var options = HostileProxy.Options()
            options.faults = [
                .cutBeforeRequest, .replyCut, .replyTruncated, .replyCorrupted, .requestCorrupted,
            ]
            (options.oneIn, options.delayMilliseconds) = (2, 10)
            let proxy = try HostileProxy(to: server.port, seed: seed, options: options)
            var results: [String] = []
            for _ in 0..<30 {
                do {
                    var client = try EchoClient(proxy.port)
                    for _ in 0..<3 { results.append(try client.exchange(Self.body)) }
                } catch { results.append("broken") }
            }
            proxy.stop()
            return results
        }
        let first = try faults(seed: 1)
        #expect(try faults(seed: 1) == first)
        #expect(try faults(seed: 2) != first)
    }

    @Test func `a server that does not listen breaks the connection, and is counted`() throws {
        // A privileged port: a released one could be taken by another test meanwhile.
        let proxy = try HostileProxy(to: 9, seed: 11)
        #expect(throws: (any Error).self) {
            var client = try EchoClient(proxy.port)
            _ = try client.exchange(Self.body)
        }
        #expect(proxy.counts["proxy: server not there"] == 1)
        proxy.stop()
    }

    @Test func `stopping ends all connections at once and leaves no descriptor open`() async {
        // In a separate process, because other tests open descriptors.
        await #expect(processExitsWith: .success) { try await HostileProxyTests.stopAndCount() }
    }

    private static func stopAndCount() async throws {
        func descriptors() -> Int {
            (try? FileManager.default.contentsOfDirectory(atPath: "/dev/fd").count) ?? 0
        }
        // The first timer of a process opens descriptors that stay.
        try await Task.sleep(for: .milliseconds(1))
        let before = descriptors()
        for round in 0..<10 {
            let server = try EchoServer()
            let proxy = try Self.proxy(
                server, ProxyFault.allCases.filter { $0 != .connectionRefused || round > 5 },
                delay: 3_600_000)
            let clients = (0..<8).compactMap { _ in try? EchoClient(proxy.port) }
            for client in clients { try? client.send(Self.body) }
            try await eventually("connections", where: { $0 > 0 }) {
                proxy.counts["proxy: connections"] ?? 0
            }
            let begun = ContinuousClock.now
            proxy.stop()
            // Less than the delay of an hour.
            try #require(ContinuousClock.now - begun < .seconds(600))
            server.stop()
        }
        // The runtime may open up to four at first use; a leak of one in each round would be ten.
        try await eventually("descriptors", where: { $0 <= before + 4 }) { descriptors() }
    }
}

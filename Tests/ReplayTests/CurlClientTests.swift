// Cases below BoundedHTTPClient: threads that do not start, one deadline for a request and its
// repetition, and a lost wake-up.

#if os(Linux)
    import Foundation
    import Synchronization
    import TestSupport
    import Testing

    @testable import Replay

    @Suite(.timeLimit(.minutes(10))) struct CurlClientTests {
        private func request(_ server: LocalServer) throws -> (BoundedHTTPRequest, HTTPOrigin) {
            let url = try #require(URL(string: server.base + "/v1/events"))
            return (BoundedHTTPRequest(url), try HTTPOrigin(endpoint: url))
        }

        @Test(.verifies("SEC-22")) func `a request whose thread cannot start is an error`()
            async throws
        {
            let server = try LocalServer { _ in .reply(200) }
            let (request, origin) = try request(server)
            // No address space has room for a stack of 1 PiB.
            let client = try CurlClient(
                BoundedHTTPClient.Timeouts(silenceSeconds: 60, requestSeconds: nil),
                stackBytes: 1 << 50)
            for _ in 0..<20 {
                let error = await #expect(throws: TransportError.self) {
                    try await client.send(request, to: origin, ReplyBody())
                }
                #expect(error?.code == .connectionFailed)
                #expect(error?.isTransient == true)
                #expect(error?.detail.contains("thread") == true)
            }
            #expect(server.requests.isEmpty)
        }

        @Test(.verifies("DL-12"))
        func `a name that leads to this machine is refused where the request asks for it`()
            async throws
        {
            let server = try LocalServer { _ in .reply(200) }
            let base = server.base.replacing("127.0.0.1", with: "localhost")
            let url = try #require(URL(string: base + "/v1/events"))
            let origin = try HTTPOrigin(endpoint: url)
            let client = try CurlClient(
                BoundedHTTPClient.Timeouts(silenceSeconds: 60, requestSeconds: nil))
            var careful = BoundedHTTPRequest(url)
            careful.refusesLocalAddresses = true
            let refused = careful
            func refuse() async {
                let error = await #expect(throws: TransportError.self) {
                    try await client.send(refused, to: origin, ReplyBody())
                }
                #expect(error?.code == .localAddress)
            }
            await refuse()
            #expect(server.requests.isEmpty)
            let head = try await client.send(BoundedHTTPRequest(url), to: origin, ReplyBody())
            #expect(head.status == 200)
            // It may find the connection of the request before.
            await refuse()
        }

        @Test(.verifies("DL-12", "SEC-23"))
        func `an exception of the environment's proxy leads to no local address`() async {
            // In a separate process, because the environment is that of all tests.
            await #expect(processExitsWith: .success) {
                try await CurlClientTests.sendPastException()
            }
        }

        private static func sendPastException() async throws {
            let (proxy, server) = (
                try LocalServer { _ in .reply(502) }, try LocalServer { _ in .hangUp }
            )
            for (name, value) in [("https_proxy", proxy.base), ("no_proxy", "localhost")] {
                setenv(name, value, 1)
            }
            let url = try #require(URL(string: "https://localhost:\(server.port)/image"))
            var request = BoundedHTTPRequest(url)
            request.refusesLocalAddresses = true
            let client = try CurlClient(
                BoundedHTTPClient.Timeouts(silenceSeconds: 60, requestSeconds: nil))
            _ = try? await client.send(request, to: HTTPOrigin(endpoint: url), ReplyBody())
            #expect(proxy.requests.first?.method == "CONNECT")
        }

        // libcurl repeats most requests itself. Whether it leaves the repetition to the exchange
        // depends on microseconds, so the test covers the deadline that both share.
        @Test(.verifies("RPL-12"))
        func `the deadline of a request begins once, when it is created`() async throws {
            let server = try LocalServer { _ in .script { $0.waitForEnd() } }
            let (request, origin) = try request(server)
            let timeouts = BoundedHTTPClient.Timeouts(silenceSeconds: 60, requestSeconds: 1)
            let shortest = try await shortestDuration(below: .milliseconds(500)) {
                let exchange = CurlExchange(
                    request, to: origin, ReplyBody(), timeouts, Cancellation())
                // In real time: an exchange reads the system's clock.
                try await Task.sleep(for: .seconds(1))
                let handle = try #require(CurlHandle())
                let begin = ContinuousClock.now
                var result: Result<BoundedHTTPResponseHead, any Error>?
                exchange.run(on: handle) { end, _ in result = end }
                let duration = ContinuousClock.now - begin
                let end = try #require(result)
                let error = #expect(throws: TransportError.self) { try end.get() }
                #expect(error?.code == .timedOut)
                return duration
            }
            // A deadline that began with `run` would be 1 s away.
            #expect(shortest < .milliseconds(500))
        }

        @Test(.verifies("RPL-12")) func `a cancelled request ends even without a wake-up`()
            async throws
        {
            let shortest = try await shortestDuration(below: .seconds(30)) {
                let server = try LocalServer { _ in .script { $0.waitForEnd() } }
                let (request, origin) = try self.request(server)
                let handle = try #require(CurlHandle(canBeWoken: false))
                let cancellation = Cancellation()
                let result = Mutex<Result<BoundedHTTPResponseHead, any Error>?>(nil)
                let timeouts = BoundedHTTPClient.Timeouts(
                    silenceSeconds: 100_000, requestSeconds: nil)
                Thread.detachNewThread {
                    CurlExchange(request, to: origin, ReplyBody(), timeouts, cancellation)
                        .run(on: handle) { end, _ in result.withLock { $0 = end } }
                }
                try await eventually("requests", is: 1) { server.requests.count }
                // In real time: libcurl's short waits at the beginning of a request are over after that.
                try await Task.sleep(for: .seconds(2))
                let begin = ContinuousClock.now
                cancellation.cancel()
                try await eventually("the exchange has ended", is: true) {
                    result.withLock { $0 } != nil
                }
                #expect(throws: CancellationError.self) { try result.withLock { $0 }?.get() }
                return ContinuousClock.now - begin
            }
            // The loop checks for cancellation once a second; before, it slept for a minute.
            #expect(shortest < .seconds(30))
        }
    }
#endif

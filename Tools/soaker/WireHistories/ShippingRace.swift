// Compares the rate of shipping with a plain client that posts the same bytes, in turn.
// Spec/testing/testing.md.

import DaybookOffline
import DaybookTestKit
import Foundation

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// A race of two clients to a server that accepts everything.
public struct ShippingRace: Sendable {
    /// The cost of a round.
    public struct Turn: Sendable {
        public var seconds: Double
        /// The processor time of the whole process: of the client and of the server.
        public var processorSeconds: Double
    }

    /// The measurements.
    public struct Result: Sendable, CustomStringConvertible {
        /// The number of events in a round.
        public var events: Int
        /// The number of bytes of the batches in a round.
        public var bytes: Int
        /// The rounds of the replayer.
        public var ours: [Turn]
        /// The rounds of the plain client.
        public var plain: [Turn]
        /// Bytes of the records of verdicts in the log / bytes of the shipped lines.
        public var recordShare: Double
        /// Growth of the log's segments / their size before shipping.
        public var fileShare: Double

        /// The median over the rounds of the replayer's rate / the plain client's rate.
        public var ratio: Double {
            ShippingRace.median(zip(plain, ours).map { $0.seconds / $1.seconds })
        }

        public var description: String {
            func rate(_ name: String, _ turns: [Turn]) -> String {
                let seconds = turns.map(\.seconds)
                let median = ShippingRace.median(seconds)
                return String(
                    format: "%@: %.0f events/s, %.1f MB/s, %.2f s (%@)", name,
                    Double(events) / median, Double(bytes) / median / 1e6, median,
                    seconds.map { String(format: "%.2f", $0) }.joined(separator: " "))
            }
            return """
                events: \(events), \(bytes) bytes of batches
                \(rate("replayer", ours))
                \(rate("plain client", plain))
                \(String(format: "ratio: %.2f (budget: 0.7 at least)", ratio))
                \(String(format: "records: %.3f %% of the lines, ", recordShare * 100))\
                \(String(format: "%.3f %% of the files (budget: 1 %%)", fileShare * 100))
                """
        }
    }

    private let events: Int
    private let rounds: Int
    private let requests: Int
    private let progress: @Sendable (String) -> Void

    /// Creates a race.
    ///
    /// - Parameters:
    ///   - events: the number of events in the log.
    ///   - rounds: the number of measurements of each client.
    ///   - requests: the number of concurrent requests.
    ///   - progress: called with messages of progress.
    public init(
        events: Int, rounds: Int, requests: Int,
        progress: @escaping @Sendable (String) -> Void = { _ in }
    ) {
        self.events = events
        self.rounds = rounds
        self.requests = requests
        self.progress = progress
    }

    /// Runs the race.
    public func run() async throws -> Result {
        let folder = try TemporaryFolder()
        defer { folder.remove() }
        let log = folder.appending("log")
        try await makeLog(at: log)
        progress("the log is made")
        let server = try NullServer()
        // The first round is not timed: it records the bodies that the plain client posts.
        server.startRecording()
        var result = Result(
            events: 0, bytes: 0, ours: [], plain: [], recordShare: 0, fileShare: 0)
        _ = try await shipCopy(of: log, server, &result)
        let batches = server.stopRecording()
        result.bytes = batches.reduce(0) { $0 + $1.count }
        for round in 1...rounds {
            result.ours.append(try await shipCopy(of: log, server, &result))
            result.plain.append(try await postBatches(batches, try server.endpoint))
            progress("round \(round) of \(rounds)")
        }
        return result
    }

    static func median(_ values: [Double]) -> Double {
        let sorted = values.sorted()
        guard !sorted.isEmpty else { return .nan }
        return (sorted[(sorted.count - 1) / 2] + sorted[sorted.count / 2]) / 2
    }

    private func makeLog(at log: URL) async throws {
        let store = try await OfflineStore.open(at: log, account: "local", compaction: nil)
        var events = WireEvents(device: 0, seed: 1)
        var batch: [EventDraft] = []
        for number in 1...self.events {
            if case .draft(let draft) = try events.next() {
                batch.append(draft)
            } else {
                batch.append(try EventDraft(CitySaved(userId: "ana", cityId: "city-\(number)")))
            }
            if batch.count == 1_000 || number == self.events {
                try await store.events.append(contentsOf: batch)
                batch = []
            }
        }
        try await store.events.checkpoint()
        try await store.close()
    }

    // MARK: The replayer

    /// Ships a copy of the log.
    private func shipCopy(
        of log: URL, _ server: NullServer, _ result: inout Result
    ) async throws -> Turn {
        let copy = log.deletingLastPathComponent().appending(path: "copy")
        try FileManager.default.copyItem(at: log, to: copy)
        defer { try? FileManager.default.removeItem(at: copy) }
        let before = try Self.bytes(of: copy)
        let store = try await OfflineStore.open(at: copy, account: "local", compaction: nil)
        var options = Replayer.Options()
        (options.reads, options.requestsMax) = (false, requests)
        let replayer = Replayer(
            store.events, transport: HTTPTransport(endpoint: try server.endpoint),
            options: options)
        let (turn, report) = try await Self.measured { try await replayer.run() }
        guard report.applied == events, report.pending == 0 else {
            throw WireFailure(
                "shipped \(report.applied) of \(events) events; \(report.pending) are pending")
        }
        result.events = report.applied
        var (lines, records) = (0, 0)
        try store.events.log.forEachEvent(
            from: Position(1), catalogue: store.events.catalogue
        ) { event in
            if event.type.hasPrefix("daybook.sync.") {
                records += event.lineBytes
            } else {
                lines += event.lineBytes
            }
            return true
        }
        result.recordShare = Double(records) / Double(lines)
        try await store.close()
        result.fileShare = Double(try Self.bytes(of: copy) - before) / Double(before)
        return turn
    }

    /// The size of a log's segments in bytes.
    private static func bytes(of log: URL) throws -> Int {
        try FileManager.default.contentsOfDirectory(at: log, includingPropertiesForKeys: nil)
            .filter { $0.pathExtension == "lz4" }
            .reduce(0) { sum, file in
                let size = try FileManager.default.attributesOfItem(atPath: file.path)[.size]
                return sum + (size as? Int ?? 0)
            }
    }

    // MARK: The plain client

    /// Posts batches, with as many concurrent requests as the replayer.
    private func postBatches(_ batches: [[UInt8]], _ endpoint: URL) async throws -> Turn {
        let session = URLSession(configuration: .ephemeral)
        defer { session.invalidateAndCancel() }
        return try await Self.measured { try await post(batches, endpoint, session) }.turn
    }

    private func post(
        _ batches: [[UInt8]], _ endpoint: URL, _ session: URLSession
    ) async throws {
        try await withThrowingTaskGroup(of: Void.self) { group in
            for first in 0..<requests {
                group.addTask {
                    for index in stride(from: first, to: batches.count, by: requests) {
                        var request = URLRequest(url: endpoint)
                        request.httpMethod = "POST"
                        request.setValue(
                            "application/cloudevents-batch+json",
                            forHTTPHeaderField: "Content-Type")
                        request.httpBody = Data(batches[index])
                        let (_, response) = try await session.data(for: request)
                        guard (response as? HTTPURLResponse)?.statusCode == 200 else {
                            throw WireFailure("the server refused a batch of the plain client")
                        }
                    }
                }
            }
            try await group.waitForAll()
        }
    }

    // MARK: Measuring

    private static func measured<Value>(
        _ body: () async throws -> Value
    ) async rethrows -> (turn: Turn, value: Value) {
        let (begun, processor) = (ContinuousClock.now, processorSeconds())
        let value = try await body()
        return (
            Turn(
                seconds: (ContinuousClock.now - begun) / .seconds(1),
                processorSeconds: processorSeconds() - processor), value
        )
    }

    /// The processor time of all threads of this process so far, in seconds.
    private static func processorSeconds() -> Double {
        var time = timespec()
        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time)
        return Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
    }
}

// The checks at the end of a WireHistory: the server has every event once, and all devices show the views
// that follow from its events.

import DaybookOffline
import DaybookTestKit
import EventGenerators
import Foundation

/// A comparison of the devices with the server's events.
struct WireCheck {
    private(set) var serverIDs: Set<UUID> = []
    private var history = EventHistory()

    /// Reads all events of a server.
    ///
    /// - Throws: `WireFailure` if an id occurs twice or a page is invalid; an error for a line that is no
    ///   event.
    init(reading port: UInt16) async throws {
        guard let endpoint = URL(string: "http://127.0.0.1:\(port)/v1/events") else {
            throw WireFailure("the URL of port \(port) is not valid")
        }
        let transport = HTTPTransport(endpoint: endpoint)
        var cursor: String?
        while true {
            let page = try await transport.send(.read(after: cursor), token: nil)
            let lines = try Self.elements(of: page.body)
            guard page.status == 200, let next = page.next else {
                throw WireFailure("the server answered a read with status \(page.status)")
            }
            if lines.isEmpty { return }
            for line in lines { try addEvent(page.body.span.bytes.extracting(line)) }
            cursor = next
        }
    }

    private mutating func addEvent(_ line: RawSpan) throws {
        let event = try ForeignEvent(line)
        guard serverIDs.insert(event.draft.id).inserted else {
            throw WireFailure("I10: the server has the event \(event.draft.id) twice")
        }
        history.addForeign(event.draft, source: event.source, sequence: event.sequence)
    }

    /// The number of the server's events.
    var count: Int { serverIDs.count }

    /// Checks all devices.
    func check(_ devices: [WireDevice]) async throws {
        let expected = Self.rows(of: OfflineModel.views.map { $0.folded(history.events) })
        for device in devices {
            let pending = await device.pendingDescriptions
            guard pending.isEmpty else {
                throw WireFailure(
                    "I12: \(pending.count) events of device \(device.name) are still in the "
                        + "outbox: " + pending.prefix(3).joined(separator: "; "))
            }
            let lost = try await device.idsExpectedOnServer().subtracting(serverIDs)
            guard lost.isEmpty else {
                throw WireFailure(
                    "I10: the server lacks \(lost.count) events of device \(device.name): "
                        + lost.prefix(3).map(\.text).joined(separator: ", "))
            }
            let shown = await device.rows
            guard shown == expected else {
                let unexpected = Set(shown).subtracting(expected).prefix(3)
                let missing = Set(expected).subtracting(shown).prefix(3)
                throw WireFailure(
                    "the views of device \(device.name) differ from those of the server's events: "
                        + "found \(unexpected.sorted()), expected \(missing.sorted())")
            }
        }
    }

    static func rows(of views: [any ListableView]) -> [String] {
        views.flatMap { view in
            view.rows().map { row in
                type(of: view).name + " "
                    + row.fields.map { "\($0.name)=\(String(decoding: $0.json, as: UTF8.self))" }
                    .joined(separator: " ")
            }
        }
    }

    private static func elements(of body: [UInt8]) throws -> [Range<Int>] {
        var ranges: [Range<Int>] = []
        let text = body.span.bytes
        do throws(JSONError) {
            var scanner = JSONScanner()
            try scanner.elements(text) { (scanner) throws(JSONError) in
                ranges.append(try scanner.value(text, depth: 1))
            }
        } catch { throw WireFailure("a page of the server is not valid JSON: \(error)") }
        return ranges
    }
}

extension ListableView {
    fileprivate static func folded(_ events: [Event]) -> any ListableView { Self(folding: events) }
}

// What must hold in the end: the server has everything once, and all devices show what its events
// come to. Part of WireHistory.

import DaybookOffline
import DaybookTestKit
import EventGenerators
import Foundation

/// The server's events, and what they come to.
struct WireCheck {
    private(set) var held: Set<UUID> = []
    private var history = EventHistory()

    /// Reads everything that a server holds.
    ///
    /// - Throws: `WireFailure` if it holds an id twice, or something that is no event.
    init(reading port: UInt16) async throws {
        guard let endpoint = URL(string: "http://127.0.0.1:\(port)/v1/events") else {
            throw WireFailure("no address")
        }
        let transport = HTTPTransport(endpoint: endpoint)
        var cursor: String?
        while true {
            let page = try await transport.send(.read(after: cursor), token: nil)
            let lines = try Self.elements(of: page.body)
            guard page.status == 200, let next = page.next else {
                throw WireFailure("a page is answered with \(page.status)")
            }
            if lines.isEmpty { return }
            for line in lines { try add(page.body.span.bytes.extracting(line)) }
            cursor = next
        }
    }

    private mutating func add(_ line: RawSpan) throws {
        let event = try ForeignEvent(line)
        guard held.insert(event.draft.id).inserted else {
            throw WireFailure("I10: the server holds \(event.draft.id) twice")
        }
        history.addForeign(event.draft, source: event.source, sequence: event.sequence)
    }

    /// How many events the server holds.
    var count: Int { held.count }

    /// Checks all devices.
    func check(_ devices: [WireDevice]) async throws {
        let expected = Self.rows(of: OfflineModel.views.map { $0.folded(history.events) })
        for device in devices {
            let waiting = await device.waiting
            guard waiting.isEmpty else {
                throw WireFailure(
                    "I12: device \(device.name) has \(waiting.count) events left: "
                        + waiting.prefix(3).joined(separator: "; "))
            }
            let lost = try await device.promised().subtracting(held)
            guard lost.isEmpty else {
                throw WireFailure(
                    "I10: of device \(device.name) the server lacks \(lost.count) events: "
                        + lost.prefix(3).map(\.text).joined(separator: ", "))
            }
            let shown = await device.rows
            guard shown == expected else {
                let more = Set(shown).subtracting(expected).prefix(3)
                let less = Set(expected).subtracting(shown).prefix(3)
                throw WireFailure(
                    "device \(device.name) does not show what the server's events come to: it has "
                        + "\(more.sorted()) instead of \(less.sorted())")
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
        } catch { throw WireFailure("a page is no JSON: \(error)") }
        return ranges
    }
}

extension ListableView {
    fileprivate static func folded(_ events: [Event]) -> any ListableView { Self(folding: events) }
}

// The events that a filter selects: their order, pages, growth, and the search for text.

import DaybookOffline
import DaybookTestKit
import EventSourcing
import Foundation
import TestSupport
import Testing

@testable import Studio

@Suite struct SelectionTests {
    /// A log of settings with the values 0, 1, …, of which the first are read.
    private func log(_ count: Int, of total: Int) throws -> (log: SampleLog, events: [Event]) {
        let events = try Histories.settings(Array(0..<total))
        let log = try SampleLog(Array(events.prefix(count)), commit: 100)
        try log.followed.readToEnd()
        return (log, events)
    }

    private func selection(
        _ log: SampleLog, _ filter: [(name: String, value: String)], newestFirst: Bool = true
    ) throws -> Selection {
        Selection(
            try EventFilter(filter), newestFirst: newestFirst, of: log.followed, since: 1)
    }

    /// All rows of a selection that is complete, three at a time.
    private func rows(_ selection: Selection) async throws -> [Int] {
        try selection.refresh()
        try await eventually("the selection is complete", is: true) {
            try selection.page(offset: 0, limit: 1).isComplete
        }
        var rows: [Int] = []
        while try rows.count < selection.page(offset: 0, limit: 1).total {
            let page = try selection.page(offset: rows.count, limit: 3)
            try #require(!page.ordinals.isEmpty)
            try #require(page.ordinals.count <= 3)
            rows += page.ordinals
        }
        #expect(try selection.page(offset: rows.count, limit: 3).ordinals.isEmpty)
        return rows
    }

    /// A filter, and which values it accepts.
    private struct Sample {
        var filter: [(name: String, value: String)]
        var accepts: @Sendable (Int) -> Bool
    }

    private static let samples = [
        Sample(filter: []) { _ in true },
        Sample(filter: [("subject", "k3")]) { $0 % 7 == 3 },
        Sample(filter: [("text", "K3\"")]) { $0 % 7 == 3 },
        Sample(filter: [("text", "\"VALUE\":1")]) { "\($0)".hasPrefix("1") },
        Sample(filter: [("text", "\"value\":1"), ("subject", "k3")]) {
            "\($0)".hasPrefix("1") && $0 % 7 == 3
        },
        Sample(filter: [("text", "in no line")]) { _ in false },
    ]

    @Test(.verifies("STU-7", "STU-8"), arguments: [true, false], samples.indices)
    func `a list has the selected events in order, also after the log has grown`(
        isNewestFirst: Bool, number: Int
    ) async throws {
        let sample = Self.samples[number]
        let (log, events) = try log(60, of: 100)
        defer { log.remove() }
        let selection = try selection(log, sample.filter, newestFirst: isNewestFirst)
        for count in [60, 100] {
            if count == 100 {
                try log.append(events[60...])
                try log.followed.readToEnd()
            }
            let ascending = (0..<count).filter(sample.accepts)
            let rows = try await rows(selection)
            #expect(rows == (isNewestFirst ? ascending.reversed() : ascending))
            #expect(try selection.all().ordinals.map(Int.init) == ascending)
            for (offset, ordinal) in rows.enumerated() {
                #expect(selection.offset(of: ordinal) == offset)
            }
            let other = (0..<count).first { !sample.accepts($0) }
            if let other { #expect(selection.offset(of: other) == nil) }
        }
    }

    @Test(.verifies("STU-8")) func `a search reads only the events that were added`() async throws {
        let (log, events) = try log(60, of: 100)
        defer { log.remove() }
        let selection = try selection(log, [("text", "k3")])
        _ = try await rows(selection)
        #expect(try selection.page(offset: 0, limit: 1).read == 60)
        try log.append(events[60...])
        try log.followed.readToEnd()
        _ = try await rows(selection)
        #expect(try selection.page(offset: 0, limit: 1).read == 100)
        try selection.refresh()
        #expect(try selection.page(offset: 0, limit: 1).isComplete)
    }

    @Test(.verifies("STU-7", "STU-8"), arguments: [false, true])
    func `a status that has changed changes the list`(withText: Bool) async throws {
        let events = try Histories.statuses()
        let log = try SampleLog(Array(events[..<9]))
        defer { log.remove() }
        try log.followed.readToEnd()
        let text = withText ? [(name: "text", value: "DAYBOOK.")] : []
        let waiting = try selection(log, text + [(name: "status", value: "pending")])
        let retracted = try selection(log, text + [(name: "status", value: "retracted")])
        #expect(try await rows(waiting) == [5, 4, 3, 2, 1, 0])
        #expect(try await rows(retracted).isEmpty)
        try log.append(events[9...])
        try log.followed.readToEnd()
        #expect(try await rows(waiting) == [3, 1])
        #expect(try await rows(retracted) == [5])
    }

    @Test(.verifies("STU-7")) func `an empty log has an empty list that grows`() async throws {
        let (log, events) = try log(0, of: 10)
        defer { log.remove() }
        let all = try selection(log, [])
        let found = try selection(log, [("text", "k3")])
        #expect(try await rows(all).isEmpty)
        #expect(try await rows(found).isEmpty)
        try log.append(events)
        try log.followed.readToEnd()
        #expect(try await rows(all) == Array((0..<10).reversed()))
        #expect(try await rows(found) == [3])
    }

    @Test(.verifies("STU-7"))
    func `equal filters share a selection, and the two orders do not`() throws {
        let (log, _) = try log(10, of: 10)
        defer { log.remove() }
        let selections = Selections(log.followed)
        let filter = try EventFilter([(name: "subject", value: "k1")])
        let newest = try selections.selection(filter, newestFirst: true)
        #expect(try selections.selection(filter, newestFirst: true) === newest)
        #expect(try selections.selection(filter, newestFirst: false) !== newest)
        // The eight used last are held.
        for number in 0..<8 {
            let other = try EventFilter([(name: "subject", value: "\(number)")])
            _ = try selections.selection(other, newestFirst: true)
        }
        #expect(try selections.selection(filter, newestFirst: true) !== newest)
    }
}

// Compares the sorted index with a sorted array, over many chunks.

import DaybookTestKit
import EventSourcing
import Foundation
import TestSupport
import Testing

@Suite struct SortedIndexTests {
    @Test func `the index has the elements of a sorted array, in both orders`() throws {
        try Property.check("index = sorted array", runs: 40) { choices in
            var index = SortedIndex<Int>()
            var model: Set<Int> = []
            let most = choices.int(in: 1...3_000)
            for _ in 0..<choices.int(in: 0...4_000) {
                let element = choices.int(in: 0...most)
                if model.remove(element) != nil {
                    index.remove(element)
                } else {
                    model.insert(element)
                    index.insert(element)
                    // A second insertion has no effect.
                    if element % 7 == 0 { index.insert(element) }
                }
            }
            // Removing a missing element has no effect.
            index.remove(most + 1)
            try #require(index.count == model.count)
            try #require(Array(index.ascending) == model.sorted())
            try #require(Array(index.descending) == model.sorted(by: >))
        }
    }

    @Test func `a range of the index equals that of a sorted array, however it was built`() throws {
        try Property.check("part = part of the array", runs: 60) { choices in
            let most = choices.int(in: 1...2_000)
            var model = Set((0..<choices.int(in: 0...1_500)).map { _ in choices.int(in: 0...most) })
            var index = SortedIndex(sorted: model.sorted())
            for _ in 0..<choices.int(in: 0...600) {
                let element = choices.int(in: 0...most)
                if model.remove(element) != nil {
                    index.remove(element)
                } else {
                    model.insert(element)
                    index.insert(element)
                }
            }
            let sorted = model.sorted()
            try #require(index.count == sorted.count)
            try #require(index.last == sorted.last)
            for _ in 0..<20 {
                let lower = choices.int(in: -1...most + 1)
                let upper = choices.int(in: lower...most + 2)
                try #require(
                    Array(index.elements(from: lower, upTo: upper))
                        == sorted.filter { lower <= $0 && $0 < upper })
            }
        }
    }

    @Test func `the changes since a copy turn the copy into the index`() throws {
        struct Item: Comparable, Sendable {
            var place: Int
            var content: Int
            static func < (lhs: Item, rhs: Item) -> Bool { lhs.place < rhs.place }
        }
        try Property.check("copy + changes = index", runs: 60) { choices in
            var model: [Int: Int] = [:]
            // Enough for several groups.
            let most = choices.int(in: 1...20_000)
            let step = choices.int(in: 1...5)
            for place in stride(from: 0, to: most, by: step) { model[place] = 0 }
            var index = SortedIndex(
                sorted: model.sorted { $0.key < $1.key }.map { Item(place: $0, content: $1) })
            let copy = index
            // Some runs remove whole groups, or fill them until they split.
            let (removes, fills) = (choices.bool(), choices.bool())
            for place in 0..<choices.int(in: 0...most) {
                if removes, model.removeValue(forKey: place) != nil {
                    index.remove(Item(place: place, content: 0))
                } else if fills, model[place] == nil {
                    index.insert(Item(place: place, content: 0))
                    model[place] = 0
                }
            }
            for step in 0..<choices.int(in: 0...60) {
                let place = choices.int(in: 0...most)
                let old = model[place].map { Item(place: place, content: $0) }
                if choices.bool() {
                    index.replace(old, with: nil)
                    model[place] = nil
                } else {
                    index.replace(old, with: Item(place: place, content: step))
                    model[place] = step
                }
            }
            let sorted = model.sorted { $0.key < $1.key }.map { Item(place: $0, content: $1) }
            try #require(Array(index) == sorted)
            try #require(Array(copy).applying(index.changes(since: copy)) == sorted)
            try #require(Array(index).applying(copy.changes(since: index)) == Array(copy))
            try #require((index == copy) == (sorted == Array(copy)))
            try #require(index == SortedIndex(sorted: sorted))
            for offset in sorted.indices.prefix(300) {
                try #require(index[offset] == sorted[offset])
            }
            let last =
                choices.bool() ? Item(place: choices.int(in: -1...most + 1), content: 0) : nil
            let limit = choices.int(in: 0...600)
            let rest = sorted.filter { item in last.map { $0 < item } ?? true }
            try #require(index.page(after: last, limit: limit) == Array(rest.prefix(limit)))
        }
    }

    @Test func `its stored form reads back, and elements out of order are refused`() throws {
        var index = SortedIndex(sorted: Array(0..<500))
        index.insert(7)
        let json = try JSONEncoder().encode(index)
        #expect(try JSONDecoder().decode(SortedIndex<Int>.self, from: json) == index)
        for text in ["[2,1]", "[1,1]"] {
            #expect(throws: DecodingError.self) {
                try JSONDecoder().decode(SortedIndex<Int>.self, from: Data(text.utf8))
            }
        }
    }

    @Test func `a copy stays as it was`() {
        var index = SortedIndex<Int>()
        for element in 0..<1_000 { index.insert(element * 7 % 1_000) }
        let copy = index
        for element in 0..<1_000 where element.isMultiple(of: 2) { index.remove(element) }
        #expect(Array(copy.ascending) == Array(0..<1_000))
        #expect(Array(index.ascending) == Array(stride(from: 1, to: 1_000, by: 2)))
    }
}

// The source of a property's inputs: a row of small numbers, drawn at random in a first run and recorded.
// Shrinker edits that row and replays it, so that generators need no code for shrinking.

/// A source of choices, random or replayed. A smaller choice always means a simpler input.
public struct Choices: Sendable {
    /// The choices so far.
    public private(set) var recorded: [UInt64] = []
    /// The notes for a failure report; see `note(_:)`.
    public private(set) var notes: [String] = []
    /// The number of occurrences by label; see `count(_:by:)`.
    public private(set) var counts: [String: Int] = [:]

    /// The groups so far, inner ones first; see `group(_:)`.
    private(set) var groups: [Group] = []

    /// A range of choices that shrinking removes together, and its nesting depth.
    struct Group {
        var range: Range<Int>
        var depth: Int
    }

    private var random: SeededRandom
    private let replay: [UInt64]?
    private var depth = 0

    /// Creates a source that draws at random.
    public init(seed: UInt64) {
        random = SeededRandom(seed: seed)
        replay = nil
    }

    /// Creates a source that replays a row of choices. After its end every choice is 0, the simplest.
    public init(replaying row: [UInt64]) {
        random = SeededRandom(seed: 0)
        replay = row
    }

    /// Draws a number below `bound`, which must not be 0.
    public mutating func next(below bound: UInt64) -> UInt64 {
        precondition(bound > 0)
        let choice = replayed(below: bound) ?? random.next(upperBound: bound)
        recorded.append(choice)
        return choice
    }

    /// The next choice of the replayed row; nil where choices are drawn at random.
    private func replayed(below bound: UInt64) -> UInt64? {
        guard let replay else { return nil }
        return recorded.count < replay.count ? min(replay[recorded.count], bound - 1) : 0
    }

    /// Draws one of ascending numbers below `bound`. The number is recorded, not its index, so that a choice
    /// keeps its meaning when a simpler run allows more numbers.
    mutating func next(
        below bound: UInt64, among allowed: some RandomAccessCollection<UInt64>
    ) -> UInt64 {
        precondition(!allowed.isEmpty)
        func pick(_ index: Int) -> UInt64 {
            allowed[allowed.index(allowed.startIndex, offsetBy: index)]
        }
        let choice =
            replayed(below: bound).map { number in allowed.first { $0 >= number } ?? pick(0) }
            ?? pick(Int(random.next(upperBound: UInt64(allowed.count))))
        recorded.append(choice)
        return choice
    }

    /// Draws a number in a range; shrinks towards its lower bound.
    public mutating func int(in range: ClosedRange<Int>) -> Int {
        let width = UInt64(bitPattern: Int64(range.upperBound &- range.lowerBound))
        return range.lowerBound &+ Int(truncatingIfNeeded: next(below: width &+ 1))
    }

    /// Draws any 64 bits except all ones; shrinks towards 0.
    public mutating func bits() -> UInt64 { next(below: .max) }

    /// Draws true in one of `oneIn` cases; shrinks towards false.
    public mutating func bool(oneIn: UInt64 = 2) -> Bool {
        oneIn <= 1 ? true : next(below: oneIn) == oneIn - 1
    }

    /// Draws an element; shrinks towards the first. The collection must not be empty.
    public mutating func element<C: RandomAccessCollection>(of all: C) -> C.Element {
        all[all.index(all.startIndex, offsetBy: int(in: 0...all.count - 1))]
    }

    /// Draws choices as a group, which shrinking removes as a whole.
    public mutating func group<T>(_ body: (inout Choices) throws -> T) rethrows -> T {
        let start = beginGroup()
        defer { endGroup(start) }
        return try body(&self)
    }

    mutating func beginGroup() -> Int {
        depth += 1
        return recorded.count
    }

    mutating func endGroup(_ start: Int) {
        depth -= 1
        groups.append(Group(range: start..<recorded.count, depth: depth))
    }

    /// Draws an array. Shrinking removes single elements, then shrinks each.
    public mutating func array<T>(
        _ count: ClosedRange<Int>, of element: (inout Choices) throws -> T
    ) rethrows -> [T] {
        var result: [T] = []
        while result.count < count.upperBound {
            let start = beginGroup()
            defer { endGroup(start) }
            guard drawsAnother(count, after: result.count) else { break }
            result.append(try element(&self))
        }
        return result
    }

    /// Draws whether another element follows. There is a choice before each element, also before required
    /// ones, so that shrinking can remove any element together with its choice.
    mutating func drawsAnother(_ count: ClosedRange<Int>, after done: Int) -> Bool {
        guard done < count.upperBound else { return false }
        let mean = UInt64(max(1, (count.upperBound - count.lowerBound + 1) / 2))
        guard done >= count.lowerBound else {
            return next(below: mean + 1, among: 1...mean) != 0
        }
        return next(below: mean + 1) != 0
    }

    /// Draws bytes with one choice, the seed of their content, so that megabytes do not need a million
    /// choices. Seed 0 gives zeros.
    public mutating func bytes(count: Int) -> [UInt8] {
        let seed = next(below: 1 << 32)
        guard seed > 0 else { return [UInt8](repeating: 0, count: count) }
        var random = SeededRandom(seed: seed)
        var result: [UInt8] = []
        result.reserveCapacity(count + 8)
        while result.count < count {
            withUnsafeBytes(of: random.next().littleEndian) { result.append(contentsOf: $0) }
        }
        result.removeLast(result.count - count)
        return result
    }

    /// Adds a note for the failure report, such as the value made of the choices.
    public mutating func note(_ text: @autoclosure () -> String) { notes.append(text()) }

    /// Counts an occurrence in this run, so that a property can require that a rare case was tried; see
    /// `Property.check(_:runs:seed:covering:while:fileID:_:)`.
    public mutating func count(_ label: String, by number: Int = 1) {
        counts[label, default: 0] += number
    }
}

extension SeededRandom {
    fileprivate mutating func next(upperBound: UInt64) -> UInt64 {
        // The bias of the multiplication is below 2^-32 for every bound that tests use.
        next().multipliedFullWidth(by: upperBound).high
    }
}

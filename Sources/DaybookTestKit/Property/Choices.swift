// Where a property's inputs come from: a row of small numbers, drawn at random in a first run and
// recorded. Shrinking edits that row and replays it, so every generator shrinks without knowing how.
// Used by every generator; edited by Shrinker.

/// A source of choices, random or replayed. A smaller choice always means a simpler input.
public struct Choices: Sendable {
    /// What was chosen so far.
    public private(set) var recorded: [UInt64] = []
    /// What a failure report shows beside the choices; see `note(_:)`.
    public private(set) var notes: [String] = []
    /// How often what happened; see `count(_:by:)`.
    public private(set) var counts: [String: Int] = [:]

    /// Which choices were drawn as one thing, the inner ones first; see `group(_:)`.
    private(set) var groups: [Group] = []

    /// Choices drawn as one thing, how deep within others.
    struct Group {
        var range: Range<Int>
        var depth: Int
    }

    private var random: SeededRandom
    private let replay: [UInt64]?
    private var depth = 0

    /// Draws at random.
    public init(seed: UInt64) {
        random = SeededRandom(seed: seed)
        replay = nil
    }

    /// Replays a row of choices; after its end every choice is 0, the simplest.
    public init(replaying row: [UInt64]) {
        random = SeededRandom(seed: 0)
        replay = row
    }

    /// A number below `bound`, which must not be 0.
    public mutating func next(below bound: UInt64) -> UInt64 {
        precondition(bound > 0)
        let choice = replayed(below: bound) ?? random.next(upperBound: bound)
        recorded.append(choice)
        return choice
    }

    /// What the replayed row says here; nil where choices are drawn at random.
    private func replayed(below bound: UInt64) -> UInt64? {
        guard let replay else { return nil }
        return recorded.count < replay.count ? min(replay[recorded.count], bound - 1) : 0
    }

    /// One of ascending numbers below `bound`. Recorded is the number and not which one of those it
    /// is, so the same choice means the same when a simpler run allows for more of them.
    mutating func next(
        below bound: UInt64, among allowed: some RandomAccessCollection<UInt64>
    ) -> UInt64 {
        precondition(!allowed.isEmpty)
        func pick(_ index: Int) -> UInt64 {
            allowed[allowed.index(allowed.startIndex, offsetBy: index)]
        }
        let choice =
            replayed(below: bound).map { wish in allowed.first { $0 >= wish } ?? pick(0) }
            ?? pick(Int(random.next(upperBound: UInt64(allowed.count))))
        recorded.append(choice)
        return choice
    }

    /// A number in a range; shrinks towards its lower bound.
    public mutating func int(in range: ClosedRange<Int>) -> Int {
        let width = UInt64(bitPattern: Int64(range.upperBound &- range.lowerBound))
        return range.lowerBound &+ Int(truncatingIfNeeded: next(below: width &+ 1))
    }

    /// Any 64 bits but all ones; shrinks towards 0.
    public mutating func bits() -> UInt64 { next(below: .max) }

    /// True in one of `oneIn` cases; shrinks towards false.
    public mutating func bool(oneIn: UInt64 = 2) -> Bool {
        oneIn <= 1 ? true : next(below: oneIn) == oneIn - 1
    }

    /// An element; shrinks towards the first. The collection must not be empty.
    public mutating func element<C: RandomAccessCollection>(of all: C) -> C.Element {
        all[all.index(all.startIndex, offsetBy: int(in: 0...all.count - 1))]
    }

    /// Draws what belongs together: shrinking leaves it out as a whole.
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

    /// An array whose elements shrink away one by one, then each by itself.
    public mutating func array<T>(
        _ count: ClosedRange<Int>, of element: (inout Choices) throws -> T
    ) rethrows -> [T] {
        var result: [T] = []
        while result.count < count.upperBound {
            let start = beginGroup()
            defer { endGroup(start) }
            guard another(count, after: result.count) else { break }
            result.append(try element(&self))
        }
        return result
    }

    /// Whether one more of a number of things is to come. One choice before each says whether it is
    /// there, also where it must be: so any of them can be left out with its choice.
    mutating func another(_ count: ClosedRange<Int>, after done: Int) -> Bool {
        guard done < count.upperBound else { return false }
        let mean = UInt64(max(1, (count.upperBound - count.lowerBound + 1) / 2))
        guard done >= count.lowerBound else {
            return next(below: mean + 1, among: 1...mean) != 0
        }
        return next(below: mean + 1) != 0
    }

    /// Bytes from one choice: their number is chosen by the caller, their content by a seed, so that
    /// megabytes do not need a million choices. Seed 0 gives zeros.
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

    /// Says in words what was made of the choices; shown in a failure report.
    public mutating func note(_ text: @autoclosure () -> String) { notes.append(text()) }

    /// Counts something that happened in this run, so that a property can prove that a rare case
    /// really was tried; see `Property.check(_:runs:seed:covering:while:fileID:_:)`.
    public mutating func count(_ label: String, by number: Int = 1) {
        counts[label, default: 0] += number
    }
}

extension SeededRandom {
    fileprivate mutating func next(upperBound: UInt64) -> UInt64 {
        // The bias of a multiplication is below 2^-32 for every bound a test uses.
        next().multipliedFullWidth(by: upperBound).high
    }
}

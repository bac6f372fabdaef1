// The random number generator of Choices: small, fast, and the same on every machine, so that a seed in a
// failure report gives the same run everywhere.

/// SplitMix64 (Steele, Lea, Flood 2014).
public struct SeededRandom: RandomNumberGenerator, Sendable {
    private var state: UInt64

    /// Creates the generator of a seed.
    public init(seed: UInt64) { state = seed }

    /// Generates the next 64 bits.
    public mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var z = state
        z = (z ^ (z >> 30)) &* 0xBF58_476D_1CE4_E5B9
        z = (z ^ (z >> 27)) &* 0x94D0_49BB_1331_11EB
        return z ^ (z >> 31)
    }

    /// The seed of one of the runs that follow from `seed`.
    static func seed(ofRun run: Int, from seed: UInt64) -> UInt64 {
        var random = SeededRandom(seed: seed &+ UInt64(run) &* 0xD1B5_4A32_D192_ED03)
        return random.next()
    }
}

// A histogram of events and bytes over time, built in one pass and in bounded memory: at most 1,024
// buckets, whose length doubles when there would be more.

import DaybookOffline

struct TimeHistogram {
    struct Bucket: Equatable {
        var events = 0
        var bytes = 0
    }

    /// The buckets by number, which counts lengths since 1970.
    private var buckets: [Int64: Bucket] = [:]
    private var numbers: ClosedRange<Int64>?
    /// The milliseconds of a bucket.
    private(set) var length: Int64 = 1

    private static let bucketsMax: Int64 = 1_024

    /// Adds an event at a time in milliseconds since 1970.
    mutating func add(_ time: Int64, bytes: Int) {
        var number = Self.floored(time, length)
        while true {
            let range =
                numbers.map { min($0.lowerBound, number)...max($0.upperBound, number) }
                ?? number...number
            if range.upperBound - range.lowerBound < Self.bucketsMax {
                numbers = range
                break
            }
            double()
            number = Self.floored(time, length)
        }
        buckets[number, default: Bucket()].events += 1
        buckets[number, default: Bucket()].bytes += bytes
    }

    /// At most `count` columns of equal length from the first event to the last.
    func columns(_ count: Int) -> [Bucket] {
        guard let numbers, count > 0 else { return [] }
        let span = numbers.upperBound - numbers.lowerBound + 1
        var columns = [Bucket](repeating: Bucket(), count: min(count, Int(span)))
        for (number, bucket) in buckets {
            let column = Int((number - numbers.lowerBound) * Int64(columns.count) / span)
            columns[column].events += bucket.events
            columns[column].bytes += bucket.bytes
        }
        return columns
    }

    private mutating func double() {
        length *= 2
        var merged: [Int64: Bucket] = [:]
        for (number, bucket) in buckets {
            merged[Self.floored(number, 2), default: Bucket()].events += bucket.events
            merged[Self.floored(number, 2), default: Bucket()].bytes += bucket.bytes
        }
        buckets = merged
        numbers = numbers.map { Self.floored($0.lowerBound, 2)...Self.floored($0.upperBound, 2) }
    }

    /// The quotient, rounded down, also for times before 1970.
    private static func floored(_ number: Int64, _ divisor: Int64) -> Int64 {
        let quotient = number / divisor
        return number % divisor < 0 ? quotient - 1 : quotient
    }
}

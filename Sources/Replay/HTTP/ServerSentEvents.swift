// A parser of server-sent events (WHATWG HTML, section 9.2.6), fed with bytes as they arrive.
// Spec/protocol/push.md, PUSH-3.

/// A parser of server-sent events.
///
/// Lines end with CR, LF or CRLF, also across two calls. Comments and the fields `event` and `retry` are
/// ignored.
struct ServerSentEvents {
    /// An event with data.
    struct Event: Hashable {
        var data: [UInt8]
        /// The last id that was sent, with this event or before it; empty if there was none.
        var id: [UInt8]
    }

    /// The largest number of bytes of an event. A line of the log has at most 256 KiB.
    static let eventBytesMax = 1024 * 1024

    /// The error for an event with more than `eventBytesMax` bytes.
    struct TooLong: Error {}

    private var line: [UInt8] = []
    private var data: [UInt8] = []
    private var hasData = false
    private var lastID: [UInt8] = []
    private var endedWithCR = false
    private var isFirstLine = true

    /// Parses further bytes. O(bytes).
    ///
    /// - Parameter receive: called with each complete event; returns false to stop.
    /// - Returns: false if `receive` has stopped it.
    mutating func parse(
        _ bytes: [UInt8], receive: (Event) -> Bool
    ) throws(TooLong) -> Bool {
        var start = 0
        if endedWithCR, bytes.first == UInt8(ascii: "\n") { start = 1 }
        if !bytes.isEmpty { endedWithCR = false }
        while let end = bytes[start...].firstIndex(where: { $0 == 0x0A || $0 == 0x0D }) {
            try append(bytes[start..<end])
            start = end + 1
            if bytes[end] == 0x0D {
                if start == bytes.count {
                    endedWithCR = true
                } else if bytes[start] == 0x0A {
                    start += 1
                }
            }
            guard try endLine(receive) else { return false }
        }
        try append(bytes[start...])
        return true
    }

    private mutating func append(_ part: ArraySlice<UInt8>) throws(TooLong) {
        guard line.count + data.count + part.count <= Self.eventBytesMax else { throw TooLong() }
        line += part
    }

    private mutating func endLine(_ receive: (Event) -> Bool) throws(TooLong) -> Bool {
        defer {
            line.removeAll(keepingCapacity: true)
            isFirstLine = false
        }
        if isFirstLine, line.starts(with: [0xEF, 0xBB, 0xBF]) { line.removeFirst(3) }
        guard !line.isEmpty else {
            defer { (data, hasData) = ([], false) }
            return hasData ? receive(Event(data: data, id: lastID)) : true
        }
        let colon = line.firstIndex(of: UInt8(ascii: ":")) ?? line.endIndex
        var value = line[colon...].dropFirst()
        if value.first == UInt8(ascii: " ") { value = value.dropFirst() }
        let name = line[..<colon]
        if name.elementsEqual("data".utf8) {
            if hasData { data.append(0x0A) }
            data += value
            hasData = true
        } else if name.elementsEqual("id".utf8), !value.contains(0) {
            lastID = Array(value)
        }
        return true
    }
}

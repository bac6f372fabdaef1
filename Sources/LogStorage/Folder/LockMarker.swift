// The content of the file `lock`: the incarnation, and the state of the log to which it belongs.
// Spec/format/line.md, LINE-4.

import LogFormat

/// `<incarnation> <fingerprint> <log id> <base> <fingerprint of the segment> <next> <state>` and a newline.
struct LockMarker: Equatable {
    var incarnation: UInt128
    /// The fingerprint of `lock` itself.
    var file: UInt64
    var logID: UInt128
    /// The first position of the last segment.
    var base: Position
    /// The fingerprint of the last segment; 0 if it is sealed.
    var segment: UInt64
    /// The log had every position before this one when the marker was written.
    var next: Position
    /// True from the first commit of a writer until it closes the log.
    var isInUse: Bool

    /// More than the bytes of a marker, so that a longer content is recognised as another one.
    static let bytesMax = 256
    static let byteCount = 165
    private static let closed = Array("closed".utf8)
    private static let inUse = Array("in-use".utf8)
    private static let spaces = [36, 57, 94, 115, 136, 157]
}

extension LockMarker {
    /// Reads a marker; nil if the bytes are not exactly one.
    init?(_ marker: [UInt8]) {
        let bytes = marker.span.bytes
        guard marker.count == Self.byteCount, marker.last == UInt8(ascii: "\n"),
            Self.spaces.allSatisfy({ marker[$0] == UInt8(ascii: " ") }),
            let incarnation = LineText.uuid(bytes, at: 0, acceptUppercase: false),
            let file = LineText.number(bytes, at: 37),
            let logID = LineText.uuid(bytes, at: 58, acceptUppercase: false),
            let base = LineText.number(bytes, at: 95),
            let segment = LineText.number(bytes, at: 116),
            let next = LineText.number(bytes, at: 137)
        else { return nil }
        let state = Array(marker[158..<164])
        guard state == Self.closed || state == Self.inUse else { return nil }
        self.init(
            incarnation: incarnation, file: file, logID: logID, base: Position(base),
            segment: segment, next: Position(next), isInUse: state == Self.inUse)
    }

    func encoded() -> [UInt8] {
        let space = UInt8(ascii: " ")
        var bytes: [UInt8] = []
        LineText.append(uuid: incarnation, to: &bytes)
        bytes.append(space)
        LineText.append(number: file, to: &bytes)
        bytes.append(space)
        LineText.append(uuid: logID, to: &bytes)
        for number in [base.rawValue, segment, next.rawValue] {
            bytes.append(space)
            LineText.append(number: number, to: &bytes)
        }
        bytes.append(space)
        bytes += isInUse ? Self.inUse : Self.closed
        bytes.append(UInt8(ascii: "\n"))
        return bytes
    }
}

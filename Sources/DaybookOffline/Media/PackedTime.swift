// Encodes times in the states of the media views: the moment if the text is that of the moment in UTC,
// otherwise the text. Spec/model/media.md, MED-9.

import Daybook

/// The tag before a time.
enum PackedTime {
    /// The moment follows; the text is the one of that moment in UTC.
    static let moment: UInt8 = 0
    /// The text follows.
    static let text: UInt8 = 1
}

extension StateWriter {
    /// Writes a time in its canonical form.
    mutating func write(packed time: ZonedTime) {
        if time.isInUTC {
            write(byte: PackedTime.moment)
            write(time.moment)
        } else {
            write(byte: PackedTime.text)
            write(time.text)
        }
    }

    mutating func write(packed time: ZonedTime?) {
        write(time != nil)
        if let time { write(packed: time) }
    }
}

extension StateReader {
    /// Reads a time.
    mutating func packedTime() throws(EventError) -> ZonedTime {
        switch try byte() {
        case PackedTime.moment: return ZonedTime(try time())
        case PackedTime.text:
            let time = try zonedTime()
            guard !time.isInUTC else {
                throw fault("a time is not in its canonical form")
            }
            return time
        default: throw fault("a time has an unknown tag")
        }
    }

    mutating func optionalPackedTime() throws(EventError) -> ZonedTime? {
        try bool() ? try packedTime() : nil
    }

    /// Checks a time and skips it.
    mutating func checkPackedTime() throws(EventError) {
        switch try byte() {
        case PackedTime.moment: _ = try time()
        case PackedTime.text:
            let time = try zonedTime()
            guard !time.isInUTC else {
                throw fault("a time is not in its canonical form")
            }
        default: throw fault("a time has an unknown tag")
        }
    }
}

extension ZonedTime: StateValue, RowValue {
    public func write(to state: inout StateWriter) { state.write(packed: self) }
    public init(from state: inout StateReader) throws(EventError) {
        self = try state.packedTime()
    }
    /// The text.
    public var rowJSON: [UInt8]? { text.rowJSON }
}

// Times in the states of the media views: a moment where that says all, else the text. Used by
// AssetRecord, AlbumsView and DeviceMediaView. Spec/model/media.md, MED-9.

import Daybook

/// What stands before a time.
enum PackedTime {
    /// The moment follows; the text is the one of that moment in UTC.
    static let moment: UInt8 = 0
    /// The text follows.
    static let text: UInt8 = 1
}

extension StateWriter {
    /// Writes a time in the one way there is for it.
    mutating func add(packed time: ZonedTime) {
        if time.isInUTC {
            add(byte: PackedTime.moment)
            add(time.moment)
        } else {
            add(byte: PackedTime.text)
            add(time.text)
        }
    }

    mutating func add(packed time: ZonedTime?) {
        add(time != nil)
        if let time { add(packed: time) }
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
                throw fault("a time is written longer than need be")
            }
            return time
        default: throw fault("a time is of no known kind")
        }
    }

    mutating func packedTimeIfThere() throws(EventError) -> ZonedTime? {
        try bool() ? try packedTime() : nil
    }

    /// Reads a time that nobody wants to know yet.
    mutating func checkPackedTime() throws(EventError) {
        switch try byte() {
        case PackedTime.moment: _ = try time()
        case PackedTime.text:
            let time = try zonedTime()
            guard !time.isInUTC else {
                throw fault("a time is written longer than need be")
            }
        default: throw fault("a time is of no known kind")
        }
    }
}

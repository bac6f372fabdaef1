// Names of earlier versions, for apps that still use them. Each calls the name that replaces it.

import Foundation

@available(*, deprecated, renamed: "LWWTimestamp")
public typealias Stamp = LWWTimestamp

extension Event {
    @available(*, deprecated, renamed: "lwwTimestamp")
    public var stamp: LWWTimestamp { lwwTimestamp }
}

extension EventStore {
    @available(*, deprecated, renamed: "requireFlushed()")
    public func settle() throws { try requireFlushed() }
}

extension Register {
    @available(*, deprecated, renamed: "lwwTimestamp")
    public var stamp: LWWTimestamp { lwwTimestamp }
}

extension StateReader {
    @available(*, deprecated, renamed: "lwwTimestamp")
    public mutating func stamp() throws(EventError) -> LWWTimestamp { try lwwTimestamp() }
}

extension StateWriter {
    @available(*, deprecated, renamed: "write(_:)")
    public mutating func add(_ value: UInt64) { write(value) }

    @available(*, deprecated, renamed: "write(count:)")
    public mutating func add(count: Int) { write(count: count) }

    @available(*, deprecated, renamed: "write(byte:)")
    public mutating func add(byte: UInt8) { write(byte: byte) }

    @available(*, deprecated, renamed: "write(_:)")
    public mutating func add(_ value: Bool) { write(value) }

    @available(*, deprecated, renamed: "write(_:)")
    public mutating func add(_ value: Double) { write(value) }

    @available(*, deprecated, renamed: "write(_:)")
    public mutating func add(_ value: UInt128) { write(value) }

    @available(*, deprecated, renamed: "write(_:)")
    public mutating func add(_ value: UUID) { write(value) }

    @available(*, deprecated, renamed: "write(_:)")
    public mutating func add(_ value: String) { write(value) }

    @available(*, deprecated, renamed: "write(_:)")
    public mutating func add(_ value: Timestamp) { write(value) }

    @available(*, deprecated, renamed: "write(_:)")
    public mutating func add(_ value: LWWTimestamp) { write(value) }

    @available(*, deprecated, renamed: "write(entry:to:)")
    public mutating func add(entry: [UInt8], to entries: inout Entries) {
        write(entry: entry, to: &entries)
    }

    @available(*, deprecated, renamed: "write(written:)")
    public mutating func add(written: some Collection<UInt8>) { write(written: written) }
}

extension ViewRow {
    @available(*, deprecated, renamed: "appendField(_:raw:)")
    public mutating func add(_ name: String, raw: [UInt8]?) { appendField(name, raw: raw) }

    @available(*, deprecated, renamed: "appendField(_:member:ofEvent:)")
    public mutating func add(_ name: String, member: String, ofEvent event: UUID) {
        appendField(name, member: member, ofEvent: event)
    }

    @available(*, deprecated, renamed: "appendField(_:_:)")
    public mutating func add(_ name: String, _ value: String?) { appendField(name, value) }

    @available(*, deprecated, renamed: "appendField(_:_:)")
    public mutating func add(_ name: String, _ value: Int) { appendField(name, value) }

    @available(*, deprecated, renamed: "appendField(_:_:)")
    public mutating func add(_ name: String, _ value: Bool) { appendField(name, value) }

    @available(*, deprecated, renamed: "appendField(_:objects:)")
    public mutating func add(_ name: String, objects: [some DeclaredObject]) {
        appendField(name, objects: objects)
    }
}

extension JSONObjectWriter {
    @available(*, deprecated, renamed: "appendMember(_:_:)")
    public mutating func add(_ name: String, _ value: String) { appendMember(name, value) }

    @available(*, deprecated, renamed: "appendMember(_:_:)")
    public mutating func add(_ name: String, _ value: Int) { appendMember(name, value) }

    @available(*, deprecated, renamed: "appendMember(_:_:)")
    public mutating func add(_ name: String, _ value: Bool) { appendMember(name, value) }

    @available(*, deprecated, renamed: "appendMember(_:_:)")
    public mutating func add(_ name: String, _ value: Double) { appendMember(name, value) }

    @available(*, deprecated, renamed: "appendMember(_:raw:)")
    public mutating func add(_ name: String, raw: [UInt8]) { appendMember(name, raw: raw) }

    @available(*, deprecated, renamed: "appendMember(literal:_:)")
    public mutating func add(member name: StaticString, _ value: String) {
        appendMember(literal: name, value)
    }

    @available(*, deprecated, renamed: "appendMember(literal:_:)")
    public mutating func add(member name: StaticString, _ value: Int) {
        appendMember(literal: name, value)
    }

    @available(*, deprecated, renamed: "appendMember(literal:_:)")
    public mutating func add(member name: StaticString, _ value: Bool) {
        appendMember(literal: name, value)
    }

    @available(*, deprecated, renamed: "appendMember(literal:_:)")
    public mutating func add(member name: StaticString, _ value: Double) {
        appendMember(literal: name, value)
    }

    @available(*, deprecated, renamed: "appendMember(literal:raw:)")
    public mutating func add(member name: StaticString, raw: [UInt8]) {
        appendMember(literal: name, raw: raw)
    }

    @available(*, deprecated, renamed: "appendMember(_:objects:)")
    public mutating func add(_ name: String, objects: [some DeclaredObject]) {
        appendMember(name, objects: objects)
    }

    @available(*, deprecated, renamed: "appendMembers(of:)")
    public mutating func addMembers(of object: [UInt8]) { appendMembers(of: object) }
}

extension MemberRegisters {
    @available(*, deprecated, renamed: "lwwTimestamps(of:)")
    public func stamps(of change: Values) throws(EventError) -> [LWWTimestamp?] {
        try lwwTimestamps(of: change)
    }

    @available(*, deprecated, renamed: "write(to:)")
    public func add(to state: inout StateWriter) throws(EventError) { try write(to: &state) }
}

extension JSONFields {
    @available(*, deprecated, renamed: "path")
    public var place: String { path }

    @available(*, deprecated, renamed: "init(_:path:nullIsMissing:)")
    public init(_ text: [UInt8], place: String, nullIsMissing: Bool = false) throws(EventError) {
        try self.init(text, path: place, nullIsMissing: nullIsMissing)
    }
}

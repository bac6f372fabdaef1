// Encodes registers in the stored states of views. Spec/model/views.md, VIEW-10.

import Daybook

extension StateWriter {
    /// Writes an optional register.
    mutating func write<Value>(
        register: Register<Value>?, _ writeValue: (inout StateWriter, Value) -> Void
    ) {
        write(register != nil)
        guard let register else { return }
        writeValue(&self, register.value)
        write(register.lwwTimestamp)
    }
}

extension StateReader {
    /// Reads a register that `write(register:_:)` wrote.
    mutating func register<Value>(
        _ read: (inout StateReader) throws(EventError) -> Value
    ) throws(EventError) -> Register<Value>? {
        guard try bool() else { return nil }
        let value = try read(&self)
        return Register(value, try lwwTimestamp())
    }
}

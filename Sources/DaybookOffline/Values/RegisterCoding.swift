// Registers in the stored states of views. Used by ContentView and LearningView. Spec/model/views.md, VIEW-10.

import Daybook

extension StateWriter {
    /// Writes a register that may not have been set.
    mutating func add<Value>(
        register: Register<Value>?, _ write: (inout StateWriter, Value) -> Void
    ) {
        add(register != nil)
        guard let register else { return }
        write(&self, register.value)
        add(register.stamp)
    }
}

extension StateReader {
    /// Reads what `add(register:_:)` wrote.
    mutating func register<Value>(
        _ read: (inout StateReader) throws(EventError) -> Value
    ) throws(EventError) -> Register<Value>? {
        guard try bool() else { return nil }
        let value = try read(&self)
        return Register(value, try stamp())
    }
}

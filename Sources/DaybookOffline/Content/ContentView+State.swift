// The stored form of the values of ContentView. Spec/model/views.md, VIEW-10.

import Daybook

extension ContentView.Resource: StateValue {
    func write(to state: inout StateWriter) {
        state.write(file)
        state.write(count: size)
        state.write(packed: lastUpdate)
        state.write(optional: hash)
        state.write(properties: properties)
    }

    init(from state: inout StateReader) throws(EventError) {
        self.init(
            file: try state.file(), size: try state.nonNegative(),
            lastUpdate: try state.packedTime(), hash: try state.optionalString(),
            properties: try state.properties())
    }
}

extension ListedCity: StateValue {
    public func write(to state: inout StateWriter) {
        state.write(name)
        state.write(code)
        state.write(optional: prefix)
        state.write(isLive)
        state.write(extrasEnabled)
        state.write(eventsEnabled)
        state.write(sortingName)
        state.write(properties: properties)
    }

    public init(from state: inout StateReader) throws(EventError) {
        self.init(
            name: try state.string(), code: try state.string(),
            prefix: try state.optionalString(), isLive: try state.bool(),
            extrasEnabled: try state.bool(), eventsEnabled: try state.bool(),
            sortingName: try state.string(), properties: try state.properties())
    }
}

extension ListedLanguage: StateValue {
    public func write(to state: inout StateWriter) {
        state.write(code)
        state.write(optional: name)
        state.write(properties: properties)
    }

    public init(from state: inout StateReader) throws(EventError) {
        self.init(
            code: try state.string(), name: try state.optionalString(),
            properties: try state.properties())
    }
}

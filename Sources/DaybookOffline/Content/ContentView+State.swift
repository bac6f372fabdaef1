// The encoded state of ContentView, and the retention of its events. Spec/model/views.md, VIEW-10;
// Spec/format/compaction.md, CMP-3.

import Daybook
import HashTreeCollections

extension ContentView {
    public func encodedState() -> [UInt8]? {
        var writer = StateWriter()
        writer.write(count: ignored)
        writer.write(register: list) { writer, cities in
            writer.write(count: cities.count)
            for city in cities {
                writer.write(city.name)
                writer.write(city.code)
                writer.write(optional: city.prefix)
                writer.write(city.isLive)
                writer.write(city.extrasEnabled)
                writer.write(city.eventsEnabled)
                writer.write(city.sortingName)
                writer.write(properties: city.properties)
            }
        }
        var entries = writer.entries(count: cities.count)
        for (code, city) in cities {
            writer.begin(code, of: &entries)
            city.write(to: &writer)
        }
        writer.end(entries)
        return writer.bytes
    }

    public init(encodedState: [UInt8]) throws {
        var reader = StateReader(encodedState)
        self.init()
        ignored = try reader.tally()
        list = try reader.register { (reader) throws(EventError) in
            var cities: [ListedCity] = []
            for _ in 0..<(try reader.count()) {
                cities.append(
                    ListedCity(
                        name: try reader.string(), code: try reader.string(),
                        prefix: try reader.optionalString(), isLive: try reader.bool(),
                        extrasEnabled: try reader.bool(), eventsEnabled: try reader.bool(),
                        sortingName: try reader.string(), properties: try reader.properties()))
            }
            return cities
        }
        var cities = self.cities
        var files = self.files
        try reader.entries { (reader, code) throws(EventError) in
            let city = try City(&reader)
            for register in city.registers {
                if let file = register.value?.file { files[file, default: 0] += 1 }
            }
            cities[code] = city
        }
        try reader.finish()
        self.cities = cities
        self.files = files
    }
}

extension ContentView.City {
    /// The registers of all files.
    fileprivate var registers: [Register<ContentView.Resource?>] {
        resources.values.flatMap { $0.values.flatMap { Array($0.values) } }
    }

    /// The LWW timestamps of the removal and of all registers.
    var lwwTimestamps: [LWWTimestamp] { [removed].compactMap(\.self) + registerTimestamps }

    private var registerTimestamps: [LWWTimestamp] {
        [languages?.lwwTimestamp, usage?.lwwTimestamp].compactMap(\.self)
            + updates.values.map(\.lwwTimestamp)
            + registers.map(\.lwwTimestamp)
    }

    fileprivate func write(to writer: inout StateWriter) {
        writer.write(removed != nil)
        if let removed { writer.write(removed) }
        writer.write(register: languages) { writer, languages in
            writer.write(count: languages.count)
            for language in languages {
                writer.write(language.code)
                writer.write(optional: language.name)
                writer.write(properties: language.properties)
            }
        }
        writer.write(register: usage) { $0.write($1.text) }
        var updates = writer.entries(count: self.updates.count)
        for (language, update) in self.updates {
            writer.begin(language, of: &updates)
            writer.write(update.value.text)
            writer.write(update.lwwTimestamp)
        }
        writer.end(updates)
        var languages = writer.entries(count: resources.count)
        for (language, paths) in resources {
            writer.begin(language, of: &languages)
            var entries = writer.entries(count: paths.count)
            for (path, urls) in paths {
                writer.begin(path, of: &entries)
                var resources = writer.entries(count: urls.count)
                for (url, register) in urls {
                    writer.begin(url, of: &resources)
                    writer.write(register.lwwTimestamp)
                    writer.write(register.value != nil)
                    register.value?.write(to: &writer)
                }
                writer.end(resources)
            }
            writer.end(entries)
        }
        writer.end(languages)
    }

    fileprivate init(_ reader: inout StateReader) throws(EventError) {
        self.init()
        if try reader.bool() { removed = try reader.lwwTimestamp() }
        languages = try reader.register { (reader) throws(EventError) in
            var languages: [ListedLanguage] = []
            for _ in 0..<(try reader.count()) {
                languages.append(
                    ListedLanguage(
                        code: try reader.string(), name: try reader.optionalString(),
                        properties: try reader.properties()))
            }
            return languages
        }
        usage = try reader.register { (reader) throws(EventError) in try reader.zonedTime() }
        var updates = self.updates
        try reader.entries { (reader, language) throws(EventError) in
            updates[language] = Register(try reader.zonedTime(), try reader.lwwTimestamp())
        }
        self.updates = updates
        var resources = self.resources
        try reader.entries { (reader, language) throws(EventError) in
            var paths: ContentView.ByPath = [:]
            try reader.entries { (reader, path) throws(EventError) in
                var urls: ContentView.ByURL = [:]
                try reader.entries { (reader, url) throws(EventError) in
                    let lwwTimestamp = try reader.lwwTimestamp()
                    urls[url] = Register(
                        try reader.bool() ? try ContentView.Resource(&reader) : nil, lwwTimestamp)
                }
                guard !urls.isEmpty else { throw reader.fault("a page has no files") }
                paths[path] = urls
            }
            guard !paths.isEmpty else { throw reader.fault("a language has no files") }
            resources[language] = paths
        }
        self.resources = resources
        guard !isEmpty else { throw reader.fault("a city is empty") }
        if let removed, registerTimestamps.contains(where: { $0 <= removed }) {
            throw reader.fault("a register is older than the removal of its city")
        }
    }
}

extension ContentView.Resource {
    fileprivate func write(to writer: inout StateWriter) {
        writer.write(file)
        writer.write(count: size)
        writer.write(lastUpdate.text)
        writer.write(optional: hash)
        writer.write(properties: properties)
    }

    fileprivate init(_ reader: inout StateReader) throws(EventError) {
        self.init(
            file: try reader.file(), size: try reader.nonNegative(),
            lastUpdate: try reader.zonedTime(), hash: try reader.optionalString(),
            properties: try reader.properties())
    }
}

extension ContentView: CompactableView {
    /// An event is needed while it is its register's winner. The last removal of a city is needed
    /// forever and supersedes all events before it.
    public func retention(of event: Event) -> Retention {
        func city(_ code: String) -> City? { cities[EntityID(code)] }
        do {
            switch event.type {
            case CitiesListed.type:
                _ = try event.payload(as: CitiesListed.self)
                return .of(event, heldBy: [list?.lwwTimestamp])
            case LanguagesListed.type:
                let city = city(try event.payload(as: LanguagesListed.self).city)
                return .of(event, heldBy: [city?.languages?.lwwTimestamp ?? city?.removed])
            case ContentUpdated.type:
                let updated = try event.payload(as: ContentUpdated.self)
                let city = city(updated.city)
                return .of(
                    event,
                    heldBy: [
                        city?.updates[EntityID(updated.language)]?.lwwTimestamp ?? city?.removed
                    ])
            case ContentUsed.type:
                let city = city(try event.payload(as: ContentUsed.self).city)
                return .of(event, heldBy: [city?.usage?.lwwTimestamp ?? city?.removed])
            case ResourceStored.type:
                let stored = try event.payload(as: ResourceStored.self)
                return retention(of: event, stored.city, stored.language, stored.path, stored.url)
            case ResourceRemoved.type:
                let removed = try event.payload(as: ResourceRemoved.self)
                return retention(
                    of: event, removed.city, removed.language, removed.path, removed.url)
            case ContentRemoved.type:
                let winner = city(try event.payload(as: ContentRemoved.self).city)?.removed
                return winner == event.lwwTimestamp
                    ? .needed(.deletion) : .of(event, heldBy: [winner])
            default: return .unconcerned
            }
        } catch { return .needed(.notUnderstood) }
    }

    private func retention(
        of event: Event, _ city: String, _ language: String, _ path: String, _ url: String
    ) -> Retention {
        let city = cities[EntityID(city)]
        let winner = city?.resources[EntityID(language)]?[EntityID(path)]?[EntityID(url)]?
            .lwwTimestamp
        return .of(event, heldBy: [winner ?? city?.removed])
    }
}

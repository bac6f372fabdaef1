// The state of ContentView as bytes, and which events it still needs. Spec/model/views.md, VIEW-10;
// Spec/format/compaction.md, CMP-3.

import Daybook
import HashTreeCollections

extension ContentView {
    public func encodedState() -> [UInt8]? {
        var writer = StateWriter()
        writer.add(count: ignored)
        writer.add(register: list) { writer, cities in
            writer.add(count: cities.count)
            for city in cities {
                writer.add(city.name)
                writer.add(city.code)
                writer.add(optional: city.prefix)
                writer.add(city.isLive)
                writer.add(city.extrasEnabled)
                writer.add(city.eventsEnabled)
                writer.add(city.sortingName)
                writer.addProperties(city.properties)
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

    /// Of everything that is known of it.
    var stamps: [Stamp] { [removed].compactMap(\.self) + registerStamps }

    private var registerStamps: [Stamp] {
        [languages?.stamp, usage?.stamp].compactMap(\.self) + updates.values.map(\.stamp)
            + registers.map(\.stamp)
    }

    fileprivate func write(to writer: inout StateWriter) {
        writer.add(removed != nil)
        if let removed { writer.add(removed) }
        writer.add(register: languages) { writer, languages in
            writer.add(count: languages.count)
            for language in languages {
                writer.add(language.code)
                writer.add(optional: language.name)
                writer.addProperties(language.properties)
            }
        }
        writer.add(register: usage) { $0.add($1.text) }
        var updates = writer.entries(count: self.updates.count)
        for (language, update) in self.updates {
            writer.begin(language, of: &updates)
            writer.add(update.value.text)
            writer.add(update.stamp)
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
                    writer.add(register.stamp)
                    writer.add(register.value != nil)
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
        if try reader.bool() { removed = try reader.stamp() }
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
            updates[language] = Register(try reader.zonedTime(), try reader.stamp())
        }
        self.updates = updates
        var resources = self.resources
        try reader.entries { (reader, language) throws(EventError) in
            var paths: ContentView.ByPath = [:]
            try reader.entries { (reader, path) throws(EventError) in
                var urls: ContentView.ByURL = [:]
                try reader.entries { (reader, url) throws(EventError) in
                    let stamp = try reader.stamp()
                    urls[url] = Register(
                        try reader.bool() ? try ContentView.Resource(&reader) : nil, stamp)
                }
                guard !urls.isEmpty else { throw reader.fault("a page has no files") }
                paths[path] = urls
            }
            guard !paths.isEmpty else { throw reader.fault("a language has no files") }
            resources[language] = paths
        }
        self.resources = resources
        guard !isEmpty else { throw reader.fault("a city is empty") }
        if let removed, registerStamps.contains(where: { $0 <= removed }) {
            throw reader.fault("something has gone with its city")
        }
    }
}

extension ContentView.Resource {
    fileprivate func write(to writer: inout StateWriter) {
        writer.add(file)
        writer.add(count: size)
        writer.add(lastUpdate.text)
        writer.add(optional: hash)
        writer.addProperties(properties)
    }

    fileprivate init(_ reader: inout StateReader) throws(EventError) {
        self.init(
            file: try reader.file(), size: try reader.nonNegative(),
            lastUpdate: try reader.zonedTime(), hash: try reader.optionalString(),
            properties: try reader.properties())
    }
}

extension ContentView: CompactableView {
    /// An event is needed while it holds its register; the last removal of a city is needed for
    /// ever, and supersedes all that came before.
    public func retention(of event: Event) -> Retention {
        func city(_ code: String) -> City? { cities[EntityID(code)] }
        do {
            switch event.type {
            case CitiesListed.type:
                _ = try event.payload(as: CitiesListed.self)
                return .of(event, heldBy: [list?.stamp])
            case LanguagesListed.type:
                let city = city(try event.payload(as: LanguagesListed.self).city)
                return .of(event, heldBy: [city?.languages?.stamp ?? city?.removed])
            case ContentUpdated.type:
                let updated = try event.payload(as: ContentUpdated.self)
                let city = city(updated.city)
                return .of(
                    event,
                    heldBy: [city?.updates[EntityID(updated.language)]?.stamp ?? city?.removed])
            case ContentUsed.type:
                let city = city(try event.payload(as: ContentUsed.self).city)
                return .of(event, heldBy: [city?.usage?.stamp ?? city?.removed])
            case ResourceStored.type:
                let stored = try event.payload(as: ResourceStored.self)
                return retention(of: event, stored.city, stored.language, stored.path, stored.url)
            case ResourceRemoved.type:
                let removed = try event.payload(as: ResourceRemoved.self)
                return retention(
                    of: event, removed.city, removed.language, removed.path, removed.url)
            case ContentRemoved.type:
                let holder = city(try event.payload(as: ContentRemoved.self).city)?.removed
                return holder == event.stamp ? .needed(.deletion) : .of(event, heldBy: [holder])
            default: return .unconcerned
            }
        } catch { return .needed(.notUnderstood) }
    }

    private func retention(
        of event: Event, _ city: String, _ language: String, _ path: String, _ url: String
    ) -> Retention {
        let city = cities[EntityID(city)]
        let holder = city?.resources[EntityID(language)]?[EntityID(path)]?[EntityID(url)]?.stamp
        return .of(event, heldBy: [holder ?? city?.removed])
    }
}

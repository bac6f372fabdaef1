// Writes the folder layout from the views and the log. Pages are read in the order of the log, written to
// a temporary file, and copied from there to their files, so that memory does not grow with their HTML.
// Spec/model/content.md, CONT-30.

import Daybook
import Foundation

/// A writer of content to a new folder.
public struct ContentLayoutWriter {
    let pages: PagesView
    let content: ContentView
    private let folder: String
    let fileSystem: any FileSystem

    /// The summary of an export.
    public struct Summary: Hashable, Sendable {
        /// The number of cities.
        public var cities = 0
        /// The number of languages of all cities.
        public var languages = 0
        /// The number of pages in all languages.
        public var pages = 0
        /// The number of resources.
        public var resources = 0
        /// The bytes of all files.
        public var bytes = 0
        /// A description of each file that could not be written.
        public var leftOut: [String] = []
        /// The cities and languages whose folders could not be named: the time of their update is not written,
        /// so that an app that imports the folder learns that an update is due.
        var unnamed: Set<[EntityID]> = []
    }

    /// Creates a writer.
    ///
    /// - Parameters:
    ///   - pages: the pages.
    ///   - content: the other content.
    ///   - folder: the path of the new folder; it must not exist.
    ///   - fileSystem: the file system of the folder.
    public init(
        _ pages: PagesView, _ content: ContentView, to folder: String, _ fileSystem: any FileSystem
    ) {
        self.pages = pages
        self.content = content
        self.folder = folder
        self.fileSystem = fileSystem
    }

    /// Writes the folder. Durable on return, except for the name of the folder.
    ///
    /// - Parameters:
    ///   - events: calls its argument with each event of the log.
    ///   - file: returns the checked content of a file.
    /// - Returns: the summary; nil if an event that the views name is no longer in the log, because the
    ///   log was compacted meanwhile.
    /// - Throws: `FileError`; what the closures throw, except `FileStoreError` (`missing`, `damaged`) of
    ///   `file`: such a file is left out, and so is a city or a language whose folder cannot be named.
    /// - Complexity: O(bytes of the log and of the files); memory for one page or file at a time.
    public func write(
        events: ((Event) throws -> Void) throws -> Void, file: (FileID) throws -> [UInt8]
    ) throws -> Summary? {
        try fileSystem.createDirectory(folder)
        guard let spool = try writeSpool(events) else { return nil }
        var summary = Summary()
        let codes = Set((pages.cityCodes + content.cityCodes).map(EntityID.init)).sorted()
            .map(\.string)
        try fileSystem.createDirectory(path(ContentLayout.content))
        for city in codes { try writeContent(of: city, spool, &summary) }
        try fileSystem.syncDirectory(path(ContentLayout.content))
        try fileSystem.createDirectory(path(ContentLayout.resources))
        for city in codes { try writeResources(of: city, file, &summary) }
        try fileSystem.syncDirectory(path(ContentLayout.resources))
        try writeLists(codes, &summary)
        try fileSystem.remove(path(ContentLayout.spool))
        try fileSystem.syncDirectory(folder)
        summary.cities = codes.count
        return summary
    }

    func path(_ parts: String...) -> String {
        ([folder] + parts).joined(separator: "/")
    }

    // MARK: Spool

    private struct Spool {
        var file: any File
        var ranges: [UUID: Range<Int>]
    }

    /// Writes the current pages to a temporary file, each in its final JSON form.
    private func writeSpool(_ events: ((Event) throws -> Void) throws -> Void) throws -> Spool? {
        var wanted: Set<UUID> = []
        for city in pages.cityCodes {
            for language in pages.languages(of: city) {
                wanted.formUnion(pages.all(city: city, language: language).map(\.event))
            }
        }
        let output = try LayoutFile(path(ContentLayout.spool), fileSystem, bytesMax: .max)
        var ranges: [UUID: Range<Int>] = [:]
        if !wanted.isEmpty {
            try events { event in
                try Task.checkCancellation()
                guard wanted.contains(event.id), let json = event.content.json,
                    let stored = try? PageStored(json: json)
                else { return }
                var writer = JSONObjectWriter()
                try stored.page.appendMembers(to: &writer, .file)
                let start = output.byteCount
                try output.write(writer.finished())
                ranges[event.id] = start..<output.byteCount
            }
        }
        guard ranges.count == wanted.count else { return nil }
        return Spool(file: try output.flushed(), ranges: ranges)
    }

    // MARK: The files

    private func writeLists(_ codes: [String], _ summary: inout Summary) throws {
        let meta = try codes.compactMap { city throws -> [UInt8]? in
            let updates = content.lastUpdates(of: city).filter {
                summary.unnamed.isDisjoint(
                    with: [[EntityID(city)], [EntityID(city), EntityID($0.language)]])
            }
            let usage = content.lastUsage(of: city)
            guard !updates.isEmpty || usage != nil else { return nil }
            var languages = JSONObjectWriter()
            for update in updates {
                var inner = JSONObjectWriter()
                inner.appendMember("last_update", update.time.text)
                languages.appendMember(update.language, raw: inner.finished())
            }
            var writer = JSONObjectWriter()
            writer.appendMember("languages", raw: languages.finished())
            if let usage { writer.appendMember("last_usage", usage.text) }
            return Self.member(city, writer.finished())
        }
        try write(path(ContentLayout.meta), "{", meta, "}", &summary)
        try write(
            path(ContentLayout.cities), "[",
            try (content.cityList ?? []).map { try $0.json(.file) }, "]", &summary)
    }

    static func member(_ name: String, _ value: [UInt8]) -> [UInt8] {
        JSONObjectWriter.string(name) + [UInt8(ascii: ":")] + value
    }

    private func writeContent(
        of city: String, _ spool: Spool, _ summary: inout Summary
    ) throws {
        let languages = content.languages(of: city)
        let paged = pages.languages(of: city)
        // Files without pages say that an update had none: a time alone would not be read.
        let updated = content.lastUpdates(of: city).map(\.language)
        let stored = Set((paged + updated).map(EntityID.init)).sorted().map(\.string)
        guard !(languages ?? []).isEmpty || !stored.isEmpty else { return }
        guard let folder = try createFolder(of: city, in: path(ContentLayout.content), &summary)
        else {
            summary.unnamed.insert([EntityID(city)])
            return
        }
        // Without a list, the languages are those of the pages.
        let known = languages ?? paged.map { ListedLanguage(code: $0, name: nil) }
        try write(
            folder + "/" + ContentLayout.languages, "[", try known.map { try $0.json(.file) },
            "]", &summary)
        for language in stored {
            guard let folder = try createFolder(of: language, in: folder, &summary) else {
                summary.unnamed.insert([EntityID(city), EntityID(language)])
                continue
            }
            for kind in PageKind.allCases {
                let pages = pages.pages(kind, city: city, language: language)
                // Readers of the layout expect the other files even if they are empty. The file of
                // points of interest is our addition.
                guard !pages.isEmpty || kind != .poi else { continue }
                let file = try LayoutFile(
                    folder + "/" + ContentLayout.file(of: kind), fileSystem)
                try file.write("[", pages.count) { number in
                    let range = spool.ranges[pages[number].event] ?? 0..<0
                    return try spool.file.read(at: range.lowerBound, count: range.count)
                }
                summary.bytes += try file.finish("]")
                summary.pages += pages.count
            }
            try fileSystem.syncDirectory(folder)
            summary.languages += 1
        }
        try fileSystem.syncDirectory(folder)
    }

    /// Creates the folder of a city or a language.
    ///
    /// - Returns: the path; nil, with a report, if the code is too long for a name, or if the file system takes
    ///   the name for that of another code, such as one that differs in case.
    func createFolder(
        of code: String, in parent: String, _ summary: inout Summary
    ) throws -> String? {
        do {
            let folder = parent + "/" + (try ContentLayout.name(of: code))
            try fileSystem.createDirectory(folder)
            return folder
        } catch let error as EventError where error.code == .tooLarge {
            summary.leftOut.append(error.detail)
        } catch let error as FileError where error.code == .exists {
            summary.leftOut.append(
                "\(code): the file system takes the name of its folder for that of another code")
        }
        return nil
    }

    func write(
        _ path: String, _ begin: String, _ elements: [[UInt8]], _ end: String,
        _ summary: inout Summary
    ) throws {
        let file = try LayoutFile(path, fileSystem)
        try file.write(begin, elements.count) { elements[$0] }
        summary.bytes += try file.finish(end)
    }
}

extension ContentLayoutWriter.Summary: CustomStringConvertible {
    /// The numbers of cities, languages, pages, resources and bytes, and the files that could not be written.
    public var description: String {
        let counts =
            "cities: \(cities), languages: \(languages), pages: \(pages), resources: \(resources), "
            + "bytes: \(bytes)"
        return ([counts] + leftOut.map { "not written: \($0)" }).joined(separator: "\n")
    }
}

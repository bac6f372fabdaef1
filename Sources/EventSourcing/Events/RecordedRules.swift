// The rules under which a log's events were recorded, in a file of its folder, so that a program that lacks a rule
// knows which events are to be sent. Spec/model/events.md, EVT-19.

import Foundation
import LogFormat
import LogStorage

/// The rules that a log has recorded, for types that are not the library's.
package struct RecordedRules: Hashable, Sendable {
    /// What a program that lacks the rule must know of it.
    struct Rule: Hashable, Sendable {
        /// The name of the action if the type is shipped.
        var action: String?
        /// True if an event of the type begins an entity.
        var beginsEntity = false
        /// The newest form of the type, if it was replaced.
        var newest: String?
    }

    /// The rules, by type.
    private(set) var rules: [String: Rule] = [:]

    /// Creates an empty set.
    init() {}

    /// The own rules of a catalogue. Each program knows the library's.
    init(of catalogue: EventCatalogue) {
        for (type, rule) in catalogue.storedRules where !type.hasLibraryPrefix {
            let newest = catalogue.newestType(of: type)
            rules[type] = Rule(
                action: rule.action, beginsEntity: rule.beginsEntity,
                newest: newest == type ? nil : newest)
        }
    }

    var isEmpty: Bool { rules.isEmpty }

    /// These rules and others, which replace those of the same types.
    func merging(_ other: RecordedRules) -> RecordedRules {
        var result = self
        result.rules.merge(other.rules) { $1 }
        return result
    }

    /// The rules that another set does not have, or has otherwise.
    func subtracting(_ other: RecordedRules) -> RecordedRules {
        var result = self
        result.rules = rules.filter { $0.value != other.rules[$0.key] }
        return result
    }

    // MARK: The file

    /// The most bytes of the file that are read.
    private static let bytesMax = 4 * 1024 * 1024

    /// Reads the file of a log; no rules if there is none, or if it cannot be read: then it is written anew with the
    /// next event to which a rule applies. O(bytes).
    init(of directory: String, _ fileSystem: any FileSystem) {
        guard let file = try? fileSystem.open(directory + "/" + LogDirectory.rules, .read),
            let size = try? file.size(), size <= Self.bytesMax,
            let bytes = try? file.read(at: 0, count: size),
            case .object(let members)? = try? JSONValue(bytes.span.bytes),
            case .array(let list)? = members["rules"]
        else { return }
        for case .object(let members) in list {
            func text(_ member: String) -> String? {
                members[member]?.stringValue.flatMap { $0.isEmpty ? nil : $0 }
            }
            guard let type = text("type"), !type.hasLibraryPrefix else { continue }
            rules[type] = Rule(
                action: text("action"), beginsEntity: members["begins"] == .bool(true),
                newest: text("newest"))
        }
    }

    /// Replaces the file of a log. Durable on return.
    func write(to directory: String, _ fileSystem: any FileSystem) throws(FileError) {
        let path = directory + "/" + LogDirectory.newRules
        let file = try fileSystem.open(path, .createIfMissing)
        try file.truncate(to: 0)
        try file.write(json, at: 0)
        try file.sync()
        try fileSystem.rename(path, to: directory + "/" + LogDirectory.rules)
        try fileSystem.syncDirectory(directory)
    }

    /// The content of the file, with the rules sorted by type.
    private var json: [UInt8] {
        let list = rules.map { (EntityID($0.key), $0.value) }.sorted { $0.0 < $1.0 }
        let elements = list.map { type, rule in
            var writer = JSONObjectWriter()
            writer.appendMember("type", type.string)
            if let action = rule.action { writer.appendMember("action", action) }
            if rule.beginsEntity { writer.appendMember("begins", true) }
            if let newest = rule.newest { writer.appendMember("newest", newest) }
            return writer.finished()
        }
        var writer = JSONObjectWriter()
        writer.appendMember("rules", raw: JSONObjectWriter.array(elements))
        return writer.finished() + [0x0A]
    }
}

extension LogReader {
    /// A catalogue with the rules that the log has recorded. One small read.
    package func adding(
        recordedRulesTo catalogue: EventCatalogue, _ fileSystem: any FileSystem = POSIXFileSystem()
    ) -> EventCatalogue {
        catalogue.adding(RecordedRules(of: directory, fileSystem))
    }
}

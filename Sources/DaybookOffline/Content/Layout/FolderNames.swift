// Finds entries whose names a file system, or a program that copied the folder, has written in another case or
// Unicode form. Spec/model/content.md, CONT-40.

import Daybook

/// The names in folders, each of which is listed once.
struct FolderNames {
    /// The names of each folder, by the form that ignores case and Unicode form.
    private var lists: [String: [String: [String]]] = [:]

    /// The form in which names are compared. `String` compares by canonical equivalence.
    static func folded(_ name: String) -> String { name.lowercased() }

    /// The path of the entry with a name, or else of the only entry whose name differs from it in case and
    /// Unicode form alone; nil if there is none. O(1), and once O(entries) for each folder.
    ///
    /// - Throws: `FileError` for a folder that cannot be listed.
    mutating func entry(
        _ name: String, in folder: String, _ source: LayoutSource
    ) throws -> String? {
        guard ContentLayout.isInside(name) else { return nil }
        let list =
            try lists[folder]
            ?? Dictionary(grouping: source.names(folder), by: Self.folded)
        lists[folder] = list
        return Self.match(name, list[Self.folded(name)] ?? []).map { "\(folder)/\($0)" }
    }

    /// The code of the city or language of a folder: `code`, which its name gives, unless a list has exactly
    /// one code that differs from it in case and Unicode form alone.
    ///
    /// - Parameters:
    ///   - code: the code that the name gives.
    ///   - listed: the codes of the lists.
    ///   - folders: the codes that the names of all folders give.
    static func code(
        _ code: EntityID, listed: [String: [String]], folders: Set<EntityID>
    ) -> EntityID {
        let found = match(code.string, listed[folded(code.string)] ?? []).map { EntityID($0) }
        guard let found, found == code || !folders.contains(found) else { return code }
        return found
    }

    /// The equal name, or else the only one.
    private static func match(_ name: String, _ names: [String]) -> String? {
        names.first { EntityID($0) == EntityID(name) } ?? (names.count == 1 ? names[0] : nil)
    }
}

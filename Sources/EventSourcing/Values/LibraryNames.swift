// The prefix that tells the library's names from an app's. Spec/model/events.md, EVT-16.

/// The names of the library's types, views and stored states.
enum LibraryNames {
    /// Their prefix.
    static let prefix: StaticString = "daybook."
}

extension String {
    /// True for a name of the library.
    var hasLibraryPrefix: Bool { utf8.starts(with: LibraryNames.prefix.description.utf8) }
}

// The value of --database.

import ArgumentParser

/// The location of the database.
enum DatabaseLocation: ExpressibleByArgument {
    /// A file of the embedded database.
    case sqlite(path: String)
    /// A PostgreSQL server.
    case postgres(url: String)

    init?(argument: String) {
        let scheme = "sqlite:".utf8
        // By bytes: a combining character after the colon belongs to the path.
        if argument.utf8.starts(with: scheme), argument.utf8.count > scheme.count {
            self = .sqlite(path: String(Substring(argument.utf8.dropFirst(scheme.count))))
        } else if argument.hasPrefix("postgres://") || argument.hasPrefix("postgresql://") {
            self = .postgres(url: argument)
        } else {
            return nil
        }
    }
}

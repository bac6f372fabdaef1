// The value of --database.

import ArgumentParser

/// The location of the database.
enum DatabaseLocation: ExpressibleByArgument {
    /// A file of the embedded database.
    case sqlite(path: String)
    /// A PostgreSQL server.
    case postgres(url: String)

    init?(argument: String) {
        if argument.hasPrefix("sqlite:"), argument.count > "sqlite:".count {
            self = .sqlite(path: String(argument.dropFirst("sqlite:".count)))
        } else if argument.hasPrefix("postgres://") || argument.hasPrefix("postgresql://") {
            self = .postgres(url: argument)
        } else {
            return nil
        }
    }
}

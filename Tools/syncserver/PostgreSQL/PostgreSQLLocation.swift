// The location of a PostgreSQL database. Its URL may contain a password, which no message may show.

import CPostgreSQL
import SyncServerStorage

/// A `postgres://` URL that libpq can parse.
package struct PostgreSQLLocation: Sendable {
    /// The URL, which may contain a password.
    let url: String
    private let password: String?

    /// Checks a URL without connecting.
    ///
    /// - Throws: `StorageError` (`wrongDatabase`), without the URL, because the faulty part may be the
    ///   password.
    package init(_ url: String) throws {
        var message: UnsafeMutablePointer<CChar>?
        guard !url.utf8.contains(0), let options = PQconninfoParse(url, &message) else {
            PQfreemem(message)
            throw StorageError(
                .wrongDatabase,
                "the database is not a valid PostgreSQL URL: use "
                    + "postgres://USER@HOST:PORT/DATABASE with special characters as %XX")
        }
        defer { PQconninfoFree(options) }
        self.url = url
        var password: String?
        var option = options
        while let keyword = option.pointee.keyword {
            if String(cString: keyword) == "password", let value = option.pointee.val {
                password = String(cString: value)
            }
            option += 1
        }
        self.password = password
    }

    /// Replaces the password in a message of libpq.
    func withoutPassword(in message: String) -> String {
        guard let password, !password.isEmpty else { return message }
        return message.replacing(password, with: "…")
    }
}

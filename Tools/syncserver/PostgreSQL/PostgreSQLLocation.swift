// Where a PostgreSQL database is, as libpq understands it, and what must not be said of it.

import CPostgreSQL
import SyncServerStorage

/// A `postgres://` URL that libpq can read.
package struct PostgreSQLLocation: Sendable {
    /// The URL, which may hold a password.
    let url: String
    private let password: String?

    /// Checks a URL. Connects nowhere.
    ///
    /// - Throws: `StorageError` (`wrongDatabase`), without the URL: what is wrong with it may stand
    ///   in the password.
    package init(_ url: String) throws {
        var message: UnsafeMutablePointer<CChar>?
        guard !url.utf8.contains(0), let options = PQconninfoParse(url, &message) else {
            PQfreemem(message)
            throw StorageError(
                .wrongDatabase,
                "the database is not a URL that PostgreSQL's library understands: "
                    + "postgres://USER@HOST:PORT/DATABASE; special characters are written as %XX")
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

    /// A message of libpq's without the password, if it should be in there.
    func withoutPassword(in message: String) -> String {
        guard let password, !password.isEmpty else { return message }
        return message.replacing(password, with: "…")
    }
}

// The text form of ids in events and files. The engine has its own internal copy, because a public extension
// of a Foundation type would appear in every app.

import Foundation

extension UUID {
    /// The text in lower case.
    var text: String { uuidString.lowercased() }
}

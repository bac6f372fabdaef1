// Ids as events and files write them. The engine has the same for itself and keeps it to itself: a public
// extension of Foundation's type would show in every app.

import Foundation

extension UUID {
    /// The text in lower case.
    var text: String { uuidString.lowercased() }
}

// Ids as events and files write them.

import Foundation

extension UUID {
    /// The text in lower case.
    var text: String { uuidString.lowercased() }
}

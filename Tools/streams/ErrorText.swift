// The description of an error for a person, also of one that a library throws.

import Foundation

package enum ErrorText {
    /// The error's own description; never the printed form of a Swift value.
    package static func of(_ error: any Error) -> String {
        if let text = (error as? any LocalizedError)?.errorDescription { return text }
        // A value of Foundation prints its domain and code.
        let isOfFoundation =
            error is CocoaError || error is POSIXError || type(of: error) is NSError.Type
        let describesItself = type(of: error) is any CustomStringConvertible.Type
        return describesItself && !isOfFoundation ? "\(error)" : error.localizedDescription
    }
}

// The names of headers that the HTTP library does not define.

import Hummingbird
import NIOHTTPTypes

extension HTTPFields.Element.Name {
    /// Creates a name from a text of this program that RFC 9110 allows.
    init(valid text: String) {
        guard let name = Self(text) else { preconditionFailure("\(text) is no header name") }
        self = name
    }
}

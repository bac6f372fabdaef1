// The account of a token of Supabase, which its replies do not name. Between SupabaseTransport and the run.
// Spec/operations/supabase.md.

import EventSourcing
import Foundation

/// The subject of a JSON Web Token (RFC 7519).
enum TokenSubject {
    /// The claim `sub` of a token, unverified: it only distinguishes accounts. Nil if the token has none.
    static func of(_ token: String) -> String? {
        let parts = token.split(separator: ".", omittingEmptySubsequences: false)
        guard parts.count == 3 else { return nil }
        // Base64 without padding, with two other digits.
        var text = String(parts[1]).replacing("-", with: "+").replacing("_", with: "/")
        text += String(repeating: "=", count: (4 - text.utf8.count % 4) % 4)
        guard let claims = Data(base64Encoded: text), let fields = try? JSONFields([UInt8](claims))
        else { return nil }
        return try? fields.string("sub")
    }
}

// The event types as SQL rows of a Supabase project: the rules that append_events checks.
// Spec/operations/supabase.md, SUP-11.

import EventSourcing

extension EventCatalogue {
    /// The SQL statement that inserts the types of this catalogue into a Supabase project: shipped types with
    /// the schema of their payload, the others with NULL, which keeps them on the device. Put it into the
    /// project's migrations, after `supabase.sql`; it may be run again.
    ///
    /// A shipped type whose payload is not a `DeclaredPayload` has no row, and its data is not checked.
    public var supabaseSQL: String {
        let rows = types.compactMap { type -> String? in
            guard let rule = self[type] else { return nil }
            guard rule.action != nil else { return "    (\(Self.literal(type)), NULL)" }
            guard let schema = rule.schema else { return nil }
            let json = String(decoding: schema.json, as: UTF8.self)
            return "    (\(Self.literal(type)), \(Self.literal(json)))"
        }
        let unchecked = types.filter { self[$0]?.action != nil && self[$0]?.schema == nil }
            .map(Self.literal)
        let removal =
            unchecked.isEmpty
            ? ""
            : "DELETE FROM daybook.event_type WHERE type IN (\(unchecked.joined(separator: ", ")));\n"
        return removal + """
            INSERT INTO daybook.event_type (type, schema) VALUES
            \(rows.joined(separator: ",\n"))
            ON CONFLICT (type) DO UPDATE SET schema = EXCLUDED.schema;
            """
    }

    /// A text as an SQL literal. Works on scalars: a combining mark may follow a quotation mark in the same
    /// character.
    private static func literal(_ text: String) -> String {
        var literal = "'"
        for scalar in text.unicodeScalars {
            literal.unicodeScalars.append(scalar)
            if scalar == "'" { literal.unicodeScalars.append(scalar) }
        }
        return literal + "'"
    }
}

// The header with which a server tells a client that its database was restored from a backup.
// Spec/protocol/sync-protocol.md, SYNC-38.

import EventSourcing
import Foundation

/// A restore of the server's database from a backup (SYNC-38).
public struct ServerRestore: Hashable, Sendable {
    /// The time of the restored state, in milliseconds since 1970. After several restores since the cursor the
    /// earliest one.
    public var time: Int64
    /// The name of the last restore; nil if the server does not say it.
    public var generation: String?
    /// The name or address of the server, if the log has synced with another database: it may lack everything.
    package var otherServer: String?

    /// Creates a restore.
    public init(time: Int64, generation: String? = nil) {
        self.time = time
        self.generation = generation
    }

    /// Whether the same restore can be recognised by the next run.
    package var isNamed: Bool { generation != nil || otherServer != nil }

    /// Another server than the log has synced with.
    package init(otherServer: String) {
        time = 0
        self.otherServer = otherServer
    }

    /// Parses a header `Daybook-Restored`; nil without a time.
    package init?(header: String) {
        let parts = header.split(separator: ";").map { $0.trimmingCharacters(in: .whitespaces) }
        guard let time = parts.first.flatMap({ Timestamp($0) }) else { return nil }
        self.time = time.milliseconds
        generation =
            parts.dropFirst().lazy
            .filter { $0.hasPrefix(Self.generationParameter) }
            .map { String($0.dropFirst(Self.generationParameter.count)) }.first
    }

    /// The value of the header `Daybook-Restored`.
    package var header: String {
        "\(Timestamp(milliseconds: time))"
            + (generation.map { "; \(Self.generationParameter)\($0)" } ?? "")
    }

    private static let generationParameter = "generation="
}

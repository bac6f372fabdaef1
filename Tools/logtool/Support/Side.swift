// The value of --keep: whose changes win if server and device have changed the same entity.

import ArgumentParser
import DaybookOffline

/// A decision on conflicts.
enum Side: String, ExpressibleByArgument, CaseIterable {
    case mine, theirs

    var resolver: any ConflictResolver {
        switch self {
        case .mine: KeepMine()
        case .theirs: KeepTheirs()
        }
    }

    var resolution: Resolution {
        switch self {
        case .mine: .keepMine
        case .theirs: .keepTheirs
        }
    }
}

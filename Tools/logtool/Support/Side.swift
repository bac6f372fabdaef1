// Whose changes count where a server and a device have changed the same thing.

import ArgumentParser
import DaybookOffline

/// A ready-made decision on conflicts.
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

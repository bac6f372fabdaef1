// The exit codes of syncserver, after sysexits.h. Also listed in Spec/operations/operating.md.

/// The exit codes of every subcommand.
enum Exit: Int32, CaseIterable {
    case clean = 0
    case refused = 1
    case usage = 64
    case badData = 65
    case noDatabase = 66
    case unavailable = 69
    case io = 74

    /// The meaning. The help prints it; a test compares the page with it.
    var meaning: String {
        switch self {
        case .clean: "clean"
        case .refused: "nothing was erased, because --yes is missing"
        case .usage: "wrong usage"
        case .badData: "a database, a token file or a certificate that cannot be used"
        case .noDatabase: "no database at the path"
        case .unavailable: "a certificate was given, and the server was built without TLS"
        case .io: "input or output failed"
        }
    }
}

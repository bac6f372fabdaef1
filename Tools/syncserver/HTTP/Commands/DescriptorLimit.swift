// The limit on open files and connections of this process. A server that reaches it can accept no
// client, so the limit is raised, and the connections are kept below it.

import ArgumentParser
import Foundation

/// The limit on open descriptors.
enum DescriptorLimit {
    /// The descriptors kept free for the database, the log and the system.
    private static let reserve = 64
    /// The least that the event loops and the database need.
    private static let leastCount: rlim_t = 32

    /// Raises the limit as far as the system permits.
    ///
    /// - Returns: the most connections that may be open, at most `connections`.
    /// - Throws: exit code 74 if not even the server's own files can be opened.
    static func raise(for connections: Int) throws(ExitCode) -> Int {
        var limit = rlimit()
        #if canImport(Darwin)
            let resource = RLIMIT_NOFILE
        #else
            let resource = __rlimit_resource_t(RLIMIT_NOFILE.rawValue)
        #endif
        guard getrlimit(resource, &limit) == 0 else { return connections }
        let wanted = rlim_t(connections + reserve)
        if limit.rlim_cur < wanted {
            limit.rlim_cur = min(wanted, limit.rlim_max)
            _ = setrlimit(resource, &limit)
            guard getrlimit(resource, &limit) == 0 else { return connections }
        }
        guard limit.rlim_cur >= leastCount else {
            throw SyncServer.failure(
                "this process may open \(limit.rlim_cur) files and needs \(leastCount); raise the "
                    + "limit (ulimit -n)", .io)
        }
        return limit.rlim_cur >= wanted
            ? connections : max(1, Int(clamping: limit.rlim_cur) - reserve)
    }
}

// What goes on until somebody ends it ends in order: what was written is flushed, what was opened is
// closed.

import Dispatch
import Foundation

/// SIGINT and SIGTERM.
enum Interruption {
    /// Waits for a task, which a signal cancels.
    static func result<T>(of task: Task<T, any Error>) async -> Result<T, any Error> {
        let sources = [SIGINT, SIGTERM].map { number in
            signal(number, SIG_IGN)
            let source = DispatchSource.makeSignalSource(signal: number)
            source.setEventHandler { task.cancel() }
            source.resume()
            return source
        }
        defer { for source in sources { source.cancel() } }
        return await task.result
    }
}

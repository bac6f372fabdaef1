// Hands the log over to another process that asks for it, and opens it again once that process has finished.
// Spec/format/companions.md, COMP-18.

import LogStorage

/// The handing over of one store's log.
struct HandoverControl {
    /// The signals of requests.
    var watch: FolderWatch?
    /// True if a request has suspended the store, and not the app.
    var isActive = false
}

extension EventStore {
    /// Hands the log over whenever another process asks for it (`LogHandover`): suspends the store as
    /// `suspend(storingStates: false)`, and resumes it when that process has finished or ended. Appends are refused
    /// meanwhile (`LogError`, `suspended`), and views can be read. Nothing polls. Only on Linux and on a disk; elsewhere
    /// the other process is refused (`locked`).
    public func handOverOnRequest() {
        guard handover.watch == nil, environment.fileSystem is POSIXFileSystem,
            let watch = FolderWatch()
        else { return }
        handover.watch = watch
        watch.followRequests(for: directory)
        let signals = watch.signals
        Task { [weak self] in
            for await _ in signals { await self?.answerRequest() }
        }
    }

    private static let resumeDelay = Duration.milliseconds(50)
    private static let resumesMax = 20

    private func answerRequest() async {
        let fileSystem = environment.fileSystem
        do {
            if HandoverRequest.stands(in: directory, fileSystem) {
                guard !isClosed, !isSuspended else { return }
                handover.isActive = true
                return try await releaseLog(storingStates: false)
            }
            for attempt in 1...Self.resumesMax where handover.isActive {
                do {
                    try resume()
                    handover.isActive = false
                } catch let error as LogError where error.code == .locked {
                    // The system ends the request of a killed process before it releases all of its locks.
                    guard attempt < Self.resumesMax else { throw error }
                    try await environment.sleep(Self.resumeDelay)
                }
            }
        } catch {
            instruments.logger.warning(
                "the log was not handed over, or not opened again",
                metadata: [
                    "error": "\((error as? LogError)?.code.rawValue ?? "\(type(of: error))")"
                ])
        }
    }
}

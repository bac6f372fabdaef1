// The queue under trial: five functions that every queue of unsent changes can fill, and two for ways that not
// every queue can be tried in.

import Foundation

/// A queue of changes that are made offline and sent later, under trial by a ``QueueTrial``.
///
/// Fill it with the code of the app. A requirement with a default may be left out: the ways that need it are
/// reported as not tried.
public protocol OfflineQueue: Sendable {
    /// Creates an empty queue of the user `alice`.
    ///
    /// - Parameter api: receives the requests of the queue; its clock is the queue's.
    /// - Throws: any error if the queue cannot be created; all ways fail then.
    init(sendingTo api: ScriptedAPI) async throws

    /// Records a change of the user who is signed in.
    ///
    /// - Parameter change: the change.
    /// - Throws: any error if the change is not recorded, so that the user sees that.
    func enqueue(_ change: TrialChange) async throws

    /// Does what the app does after a signal, and returns when nothing more can be sent now. Waits advance
    /// the API's clock.
    ///
    /// - Parameter signal: the signal.
    func run(after signal: QueueSignal) async

    /// The changes that the app shows as not sent, those that were refused included.
    ///
    /// - Throws: any error if the queue cannot be read.
    func pending() async throws -> [PendingChange]

    /// Kills the app's process at once and opens the queue anew, as the next launch does. Nothing may be
    /// saved on the way. A run under way never continues.
    ///
    /// - Throws: any error if the queue cannot be opened.
    func killAndReopen() async throws

    /// Changes the state of the queue's storage.
    ///
    /// - Parameter condition: the state, which also lasts over a restart.
    /// - Throws: `NotTried`, which is the default.
    func setStorage(_ condition: StorageCondition) async throws

    /// Signs out and signs another user in, as the app does.
    ///
    /// - Parameter user: the user to sign in.
    /// - Throws: `NotTried`, which is the default.
    func signIn(as user: String) async throws
}

extension OfflineQueue {
    /// Throws `NotTried`.
    public func setStorage(_ condition: StorageCondition) async throws {
        throw NotTried("the queue has no setStorage(_:)")
    }

    /// Throws `NotTried`.
    public func signIn(as user: String) async throws {
        throw NotTried("the queue has no signIn(as:)")
    }
}

/// A signal after which an app may send its queue.
public enum QueueSignal: CaseIterable, Sendable {
    /// The app was launched.
    case launched
    /// The network has come back.
    case networkReturned
    /// The app is in front, and time has passed.
    case timePassed
}

/// A state of a queue's storage.
public enum StorageCondition: Sendable {
    /// Everything works.
    case normal
    /// Reading fails, as before the first unlock of a device. The content is there when it is `normal` again.
    case unreadable
    /// Writing fails: the disk is full.
    case full
    /// The system has emptied the folders that it may empty, caches and temporary files. Everything works.
    case purged
}

/// A change that is not sent.
public struct PendingChange: Hashable, Sendable {
    /// The change.
    public var change: TrialChange
    /// Whether the app shows that the server has refused it.
    public var isRefused: Bool

    /// Creates a pending change.
    ///
    /// - Parameters:
    ///   - change: the change.
    ///   - isRefused: whether the app shows that the server has refused it.
    public init(_ change: TrialChange, isRefused: Bool = false) {
        self.change = change
        self.isRefused = isRefused
    }
}

/// The error of a queue that cannot be tried in a way.
public struct NotTried: Error, Hashable, Sendable, CustomStringConvertible {
    /// The reason.
    public var description: String

    /// Creates the error.
    ///
    /// - Parameter reason: the reason.
    public init(_ reason: String) { description = reason }
}

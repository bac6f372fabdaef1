// The app's check of the ids that a command refers to. Commands check before they record; imported and
// received events are not checked. Spec/model/events.md, EVT-17.

import Daybook

/// An id that a command refers to.
public enum Reference: Hashable, Sendable {
    /// The city of a save, a note, a download or a cached copy.
    case city(_ cityId: String)
    /// The course of an activation or a completion, or of a lesson or a review session on the device. The
    /// learner is nil for a lesson on the device.
    case course(_ courseId: String, learner: String?)
    /// The lesson of a completion, or a lesson on the device, for which the learner is nil.
    case lesson(_ lessonId: String, course: String, learner: String?)
}

/// The app's answer to whether an id exists. Commands ask it before they record an event that refers to the
/// id. Only the app knows its lists: that of cities can be in another store, and its ids can be others than
/// those of the cached content.
///
/// ```swift
/// let known = ReferenceCheck { reference, _ in
///     guard case .city(let id) = reference else { return true }
///     return shared.content.cities.current?.contains { $0.code == id } ?? true
/// }
/// let store = try await OfflineStore.open(at: url, account: "user-456", references: known)
/// ```
public struct ReferenceCheck: Sendable {
    private let isKnown: @Sendable (Reference, EventStore.Transaction) throws -> Bool

    /// Creates a check.
    ///
    /// - Parameter isKnown: returns whether an id exists. The transaction has the state of this store's views
    ///   right before the command records its event: a check of a list in this store is exact. The command
    ///   throws what this closure throws. It runs on the store's queue, so it must not wait.
    public init(
        _ isKnown: @escaping @Sendable (Reference, EventStore.Transaction) throws -> Bool
    ) { self.isKnown = isKnown }

    /// Whether an id exists.
    ///
    /// - Throws: what the app throws.
    func knows(_ reference: Reference, _ transaction: EventStore.Transaction) throws -> Bool {
        try isKnown(reference, transaction)
    }

    /// - Throws: `EventError` (`unknownReference`) for an id that does not exist; what the app throws.
    func require(_ reference: Reference, _ transaction: EventStore.Transaction) throws {
        guard try knows(reference, transaction) else {
            throw EventError(
                .unknownReference,
                "the \(reference) is unknown to the app's reference check; store the list that has it, or "
                    + "open the store without the check")
        }
    }
}

extension Reference: CustomStringConvertible {
    /// The kind and the id.
    public var description: String {
        switch self {
        case .city(let id): "city \(id)"
        case .course(let id, _): "course \(id)"
        case .lesson(let id, let course, _): "lesson \(id) of the course \(course)"
        }
    }
}

// The code of the article "Erasing a person".

import Daybook
import Foundation
import Synchronization

// Erasing-1 begins
struct Bought: EventPayload, Codable {
    static let type = "com.example.shop.bought"
    var customer: String
    var article: String
    var subject: String? { customer }
}

struct CustomerErased: EventPayload, Codable {
    static let type = "com.example.shop.customer.erased"
    /// A number that says nothing about the person.
    var customer: String
    var subject: String? { customer }
}

struct Customers: CompactableView, Codable {
    static let name = "customers"
    static let version = 1
    static let eventTypes: Set<String>? = [Bought.type, CustomerErased.type]
    private(set) var articles: StateDictionary<String, [String]> = [:]
    /// The first erasure of each erased customer. What another device recorded before does not count either.
    private var erasures: StateDictionary<String, LWWTimestamp> = [:]

    mutating func fold(_ event: Event) {
        guard let customer = event.subject else { return }
        if event.type == CustomerErased.type {
            articles[customer] = nil
            erasures[customer] = min(erasures[customer] ?? event.lwwTimestamp, event.lwwTimestamp)
        } else if erasures[customer] == nil, let bought = try? event.payload(as: Bought.self) {
            articles[customer, default: []].append(bought.article)
        }
    }

    func retention(of event: Event) -> Retention {
        switch event.type {
        case CustomerErased.type: .needed(.deletion)
        case Bought.type:
            event.subject.flatMap { erasures[$0] }.map { .superseded(by: [$0]) }
                ?? .needed(.current)
        default: .unconcerned
        }
    }
}
// Erasing-1 ends

package enum Erasing {
    /// - Returns: the reasons why events of the customer stay.
    package static func erase(
        _ customer: String, from store: EventStore
    ) async throws -> [KeptReason] {
        // Erasing-2 begins
        try await store.append(CustomerErased(customer: customer))
        let left = Mutex<[KeptReason]>([])
        try await store.compact(
            sealing: true,
            kept: { event, reason in
                guard event.subject == customer, event.type == Bought.type else { return }
                left.withLock { $0.append(reason) }
            })
        // Erasing-2 ends
        return left.withLock { $0 }
    }
}

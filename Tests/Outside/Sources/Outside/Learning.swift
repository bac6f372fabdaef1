// The code of the article "Caching lessons for offline use".

import DaybookOffline
import Foundation

package enum Learning {
    package static func store(
        _ store: OfflineStore, _ profile: [UInt8], _ content: [UInt8], _ sound: [UInt8]
    ) async throws -> StoredLesson {
        // Learning-1 begins
        let spanish = LanguageCombination(learn: "es", display: "de")
        try await store.learning.storeUser("user-456", info: profile)
        try await store.learning.selectCombination(spanish, for: "user-456")
        try await store.learning.storeCourses(
            [
                ListedCourse(
                    id: "beginners", title: "Beginners",
                    lessons: [ListedLesson(id: "lesson-1"), ListedLesson(id: "lesson-2")])
            ], of: spanish)
        // Learning-1 ends
        // Learning-2 begins
        let lesson = try await store.learning.storeLesson(
            "lesson-1", course: "beginners", content: content,
            files: [LearningFileContent(url: "/media/hola.mp3", content: sound)], isExplicit: true)
        print(lesson.material.size, lesson.material.storedAt)
        // Learning-2 ends
        return lesson
    }

    package static func show(_ store: OfflineStore) async throws -> Int {
        let spanish = LanguageCombination(learn: "es", display: "de")
        // Learning-3 begins
        let available = store.learning.isAvailable("lesson-1", course: "beginners")
        for await isAvailable in available.changes {
            print(isAvailable ? "on this device" : "needs a network")
            break
        }
        let next = store.learning.lesson(after: "lesson-1", course: "beginners", in: spanish)
        print(next.current?.id ?? "the last of the course")
        // Learning-3 ends
        // Learning-4 begins
        if let lesson = try await store.learning.readLesson("lesson-1", course: "beginners") {
            for file in lesson.files {
                let bytes = try await store.files.read(file.file)  // checked against its SHA-256
                print(file.url, bytes.count)
            }
        }
        // Learning-4 ends
        return store.learning.storedLessons.current.count
    }

    package static func vocabulary(_ store: OfflineStore, _ given: [[UInt8]]) async throws -> Int {
        let spanish = LanguageCombination(learn: "es", display: "de")
        // Learning-5 begins
        let items = given.compactMap { try? VocabularyItem(json: $0) }
        let count = try await store.learning.cacheVocabulary(items, of: "user-456", in: spanish)
        // Learning-5 ends
        return count
    }

    package static func ahead(
        _ store: OfflineStore, server: URL, credentials: any Credentials,
        reachability: any Reachability
    ) async -> Timestamp? {
        // Learning-6 begins
        let downloads = LearningDownloads(
            store, base: server, credentials: credentials, user: "user-456",
            reachability: reachability, policy: .iOS)
        let working = Task { try await downloads.run() }
        // Learning-6 ends
        // Learning-7 begins
        await downloads.notice(.appResume)
        let wakeAt = await downloads.nextPrefetch()
        // Learning-7 ends
        working.cancel()
        try? await working.value
        return wakeAt
    }

    package static func learn(
        _ store: OfflineStore, _ downloads: LearningDownloads
    ) async throws -> Int {
        // Learning-8 begins
        try await downloads.downloadLesson("lesson-2", course: "beginners")
        let reviews = try await downloads.downloadReviews()
        do {
            let review = try await downloads.startReview("review-1")
            print(review.content.count)
            try await store.progress.completeReview(
                "review-1", course: "beginners", by: "user-456", itemsSeen: 10, itemsCorrect: 9)
        } catch let error as LearningError where error.code == .downloadInProgress {
            print("in a moment")
        }
        // Learning-8 ends
        return reviews.count
    }

    package static func ship(
        _ store: OfflineStore, _ carry: @escaping @Sendable ([UInt8]) async throws -> [UInt8]
    ) async throws -> SyncReport {
        // Learning-9 begins
        let transport = HostTransport(carry: carry)
        let report = try await Replayer(store.events, transport: transport).run()
        // Learning-9 ends
        return report
    }
}

// Learning-10 begins
struct HostTransport: Transport {
    /// Sends a batch to the host app's server, with the host's token.
    let carry: @Sendable ([UInt8]) async throws -> [UInt8]

    func send(_ request: TransportRequest, token: String?) async throws -> TransportReply {
        switch request {
        case .append(let batch): TransportReply(status: 200, body: try await carry(batch))
        case .read: TransportReply(status: 200, body: Array("[]".utf8))
        }
    }
}
// Learning-10 ends

// The prefetch policy, row by row: the triggers of each system.
// Spec/model/learning.md, LRN-20 to LRN-24.

import DaybookTestKit
import EventGenerators
import EventSourcing
import Foundation
import TestSupport
import Testing

@testable import DaybookOffline

private let hour: Int64 = 3_600_000
private let now: Int64 = 1_800_000_000_000

/// A state computed from events.
private struct Bench {
    var history = EventHistory()
    var learning = LearningView()
    var progress = ProgressView()

    init(selected: Bool = true) throws {
        if selected {
            try add(CombinationSelected(userId: "u", combination: spanish), at: 0)
        }
        try add(
            CoursesListed(
                combination: spanish,
                courses: [
                    ListedCourse(
                        id: "c", lessons: ["a", "b", "z"].map { ListedLesson(id: $0) }),
                    ListedCourse(id: "d", lessons: [ListedLesson(id: "q")]),
                ]), at: 0)
    }

    mutating func add(_ payload: some EventPayload, at milliseconds: Int64) throws {
        let event = history.addOwn(
            try EventDraft(payload, time: Timestamp(milliseconds: milliseconds)))
        learning.fold(event)
        progress.fold(event)
    }

    mutating func store(_ reviewId: String, at milliseconds: Int64) throws {
        try add(
            ReviewStored(
                userId: "u", reviewId: reviewId, combination: spanish, order: 0,
                material: LearningMaterial(content: Array("{}".utf8), isExplicit: false)),
            at: milliseconds)
    }

    /// Completes a review session, or a lesson of this id.
    mutating func complete(
        _ reviewId: String, _ isLesson: Bool = false, at milliseconds: Int64
    ) throws {
        guard !isLesson else {
            return try add(
                LessonCompleted(userId: "u", courseId: "c", lessonId: reviewId), at: milliseconds)
        }
        try add(
            ReviewCompleted(
                userId: "u", courseId: "c", reviewId: reviewId, itemsSeen: 1, itemsCorrect: 1),
            at: milliseconds)
    }

    func state(at milliseconds: Int64 = now, fetchedAt: Int64? = nil) -> PrefetchState {
        PrefetchState(
            learning: learning, progress: progress, userId: "u",
            now: Timestamp(milliseconds: milliseconds),
            fetchedAt: fetchedAt.map { Timestamp(milliseconds: $0) })
    }
}

@Suite struct PrefetchPolicyTests {
    private static let reviews = [PrefetchPolicy.Work.reviews(first: 5, spanish)]
    private static let policies = ["iOS": PrefetchPolicy.iOS, "Android": .android]

    /// The table of the document: a trigger, and true if it causes a fetch of sessions.
    static let rows: [(PrefetchPolicy.Trigger, iOS: Bool, android: Bool)] = [
        (.appStart, true, true),
        (.appResume, true, false),
        (.reviewFinish, true, false),
        (.logIn, true, false),
        (.combinationChange, true, false),
        (.completionAge, false, true),
        (.lastReviewDone, false, true),
    ]

    @Test(.verifies("LRN-20"), arguments: rows)
    func `each system fetches sessions on its own triggers and on no other`(
        trigger: PrefetchPolicy.Trigger, iOS: Bool, android: Bool
    ) throws {
        var bench = try Bench()
        // Makes the last two triggers true: one session, completed long ago.
        try bench.store("r", at: now - 100 * hour)
        try bench.complete("r", at: now - 50 * hour)
        #expect(
            PrefetchPolicy.iOS.work(for: trigger, in: bench.state()) == (iOS ? Self.reviews : []))
        #expect(
            PrefetchPolicy.android.work(for: trigger, in: bench.state())
                == (android ? Self.reviews : []))
    }

    @Test(.verifies("LRN-21"))
    func `five sessions are fetched whatever is stored, and none before languages are chosen`()
        throws
    {
        var bench = try Bench()
        for index in 0..<7 { try bench.store("r\(index)", at: now) }
        var policy = PrefetchPolicy.iOS
        #expect(policy.work(for: .appStart, in: bench.state()) == Self.reviews)
        policy.reviewCount = 2
        #expect(
            policy.work(for: .appStart, in: bench.state()) == [.reviews(first: 2, spanish)])
        policy.reviewCount = .min
        #expect(policy.work(for: .appStart, in: bench.state()).isEmpty)
        let unknown = try Bench(selected: false)
        for policy in Self.policies.values {
            for (trigger, _, _) in Self.rows {
                #expect(policy.work(for: trigger, in: unknown.state()).isEmpty)
            }
            #expect(policy.due(in: unknown.state()) == nil)
        }
    }

    @Test(.verifies("LRN-22"))
    func `the last session is done when there are sessions and all are completed`() throws {
        var bench = try Bench()
        func work() -> [PrefetchPolicy.Work] {
            PrefetchPolicy.android.work(for: .lastReviewDone, in: bench.state())
        }
        #expect(work().isEmpty)
        try bench.store("r", at: now)
        try bench.store("s", at: now)
        #expect(work().isEmpty)
        try bench.complete("r", at: now)
        #expect(work().isEmpty)
        try bench.complete("s", at: now)
        #expect(work() == Self.reviews)
        try bench.store("t", at: now)
        #expect(work().isEmpty)
        try bench.complete("t", at: now)
        #expect(work() == Self.reviews)
        // A session that was fetched again counts as not completed.
        try bench.store("t", at: now + 1)
        #expect(
            PrefetchPolicy.android.work(
                for: .lastReviewDone, in: bench.state(at: now + 1)
            ).isEmpty)
        #expect(work() == Self.reviews)
    }

    @Test(.verifies("LRN-42"))
    func `eighteen hours after the first completion since the last fetch it is due`() throws {
        var bench = try Bench()
        let policy = PrefetchPolicy.android
        func due(_ state: PrefetchState) -> Int64? { policy.due(in: state)?.milliseconds }
        func isDue(_ state: PrefetchState) -> Bool {
            !policy.work(for: .completionAge, in: state).isEmpty
        }
        #expect(due(bench.state()) == nil)
        #expect(!isDue(bench.state()))
        try bench.store("r", at: now - 40 * hour)
        try bench.complete("old", at: now - 41 * hour)
        #expect(due(bench.state()) == nil)
        try bench.add(
            LessonCompleted(userId: "u", courseId: "c", lessonId: "a"), at: now - 18 * hour + 1)
        // A later completion does not delay the fetch.
        try bench.complete("r", at: now - 2 * hour)
        #expect(due(bench.state()) == now + 1)
        #expect(!isDue(bench.state()))
        #expect(isDue(bench.state(at: now + 1)))
        // A fetch without sessions counts, too; and a recorded one.
        #expect(due(bench.state(fetchedAt: now - hour)) == nil)
        try bench.store("s", at: now - 3 * hour)
        #expect(due(bench.state()) == now + 16 * hour)
        #expect(PrefetchPolicy.iOS.due(in: bench.state()) == nil)
    }

    @Test(.verifies("LRN-42"), arguments: [nil, now - 60 * hour])
    func `a repeated completion does not delay the fetch`(fetchedAt: Int64?) throws {
        for isLesson in [false, true] {
            try expectNothingPutOff(isLesson, fetchedAt)
        }
    }

    private func expectNothingPutOff(_ isLesson: Bool, _ fetchedAt: Int64?) throws {
        var bench = try Bench()
        for hours in [50, 33, 16, 0] as [Int64] {
            try bench.complete("r", isLesson, at: now - hours * hour)
            let due = PrefetchPolicy.android.due(in: bench.state(fetchedAt: fetchedAt))
            #expect(due?.milliseconds == now - 32 * hour)
        }
    }

    @Test(.verifies("LRN-42"), arguments: [false, true])
    func `completions before and after the last fetch make the fetch early, not late`(
        isLesson: Bool
    ) throws {
        var bench = try Bench()
        func due() -> Int64? {
            PrefetchPolicy.android.due(in: bench.state(fetchedAt: now - 10 * hour))?.milliseconds
        }
        try bench.complete("r", isLesson, at: now - 30 * hour)
        #expect(due() == nil)
        try bench.complete("r", isLesson, at: now - 7 * hour)
        #expect(due() == now + 8 * hour)
        try bench.complete("r", isLesson, at: now)
        #expect(due() == now + 8 * hour)
    }

    @Test(.verifies("LRN-42"))
    func `times of wrong clocks delay no fetch by more than eighteen hours, and never trap`()
        throws
    {
        var bench = try Bench()
        try bench.complete("r", at: Timestamp.range.upperBound)
        var policy = PrefetchPolicy.android
        func due(at now: Int64, fetchedAt: Int64? = nil) -> Int64? {
            policy.due(in: bench.state(at: now, fetchedAt: fetchedAt))?.milliseconds
        }
        // The time does not move with the clock.
        for later in [now, now + 17 * hour, now + 18 * hour] {
            #expect(due(at: later, fetchedAt: now) == now + 18 * hour)
            #expect(due(at: later) == later)
            // A fetch in the future does not count.
            #expect(due(at: later, fetchedAt: later + 1) == later)
        }
        policy.completionAgeSeconds = .max
        #expect(due(at: now, fetchedAt: now) == Timestamp.range.upperBound)
        policy.completionAgeSeconds = .min
        #expect(due(at: now, fetchedAt: now) == now + 60_000)
        try bench.complete("s", at: Timestamp.range.lowerBound)
        for now in [Int64.min, .max] {
            #expect(
                policy.due(in: bench.state(at: now))?.milliseconds
                    == Timestamp.range.lowerBound + 60_000)
        }
    }

    @Test(.verifies("LRN-24"), arguments: [PrefetchPolicy.iOS, .android])
    func `a started lesson causes a fetch of the next one unless it is stored or the last`(
        policy: PrefetchPolicy
    ) throws {
        var bench = try Bench()
        func work(_ lesson: String, _ course: String = "c") -> [PrefetchPolicy.Work] {
            policy.work(
                for: .lessonStart(lessonId: lesson, courseId: course), in: bench.state())
        }
        #expect(work("a") == [.lesson(lessonId: "b", courseId: "c", spanish)])
        #expect(work("z").isEmpty)
        #expect(work("q", "d").isEmpty)
        #expect(work("unknown").isEmpty)
        try bench.add(
            LessonStored(
                courseId: "c", lessonId: "b",
                material: LearningMaterial(content: Array("{}".utf8), isExplicit: false)), at: 1)
        #expect(work("a").isEmpty)
        #expect(work("b") == [.lesson(lessonId: "z", courseId: "c", spanish)])
        var quiet = policy
        quiet.fetchesNextLesson = false
        #expect(
            quiet.work(for: .lessonStart(lessonId: "b", courseId: "c"), in: bench.state()).isEmpty)
    }
}

// The code of the article "Testing views".

import Daybook
import DaybookTestKit
import Testing

@testable import Engine

private typealias TripPlanned = FirstRelease.TripPlanned
private typealias TripPlannedV2 = SecondRelease.TripPlannedV2
private typealias TripNamed = SecondRelease.TripNamed
private typealias TripNames = SecondRelease.TripNames
private typealias Trips = SecondRelease.Trips
private let upcasters = SecondRelease.upcasters

// TestingViews-1 begins
@Test func tripNamesObeyTheLaws() throws {
    try Property.checkProjection(TripNames.self) { choices in
        TripNamed(
            trip: choices.element(of: ["spring", "summer"]),
            name: choices.element(of: ["North", "South", "Around"]))
    }
}
// TestingViews-1 ends

@Test func tripsGoByTheOrderOfArrival() throws {
    let failure = try #require(throws: PropertyFailure.self) {
        try Property.checkProjection(
            Trips.self, events: { TripPlannedV2(trip: "spring", stops: [$0.bool() ? "a" : "b"]) })
    }
    #expect((failure.cause as? ProjectionLaw.Violation)?.law == .orderOfArrival)
}

// TestingViews-2 begins
@Test func oldTripsCountAsNewOnes() throws {
    try Property.checkProjection(
        Trips.self, rules: [.of(TripPlannedV2.self, action: "PLAN_TRIP")], upcasters: upcasters,
        // The trip that arrived last is shown.
        except: [.orderOfArrival, .repetition]
    ) { choices in
        let trip = choices.element(of: ["spring", "summer"])
        let stop = choices.element(of: ["lake", "forest"])
        return choices.bool()
            ? TripPlannedV2(trip: trip, stops: [stop]) : TripPlanned(trip: trip, stop: stop)
    }
}
// TestingViews-2 ends

// TestingViews-3 begins
@Test func anOldTripIsShownWithItsStop() throws {
    var history = try SampleHistory(upcasters: upcasters)
    try history.record(TripPlanned(trip: "spring", stop: "lake"))
    try history.record(TripPlannedV2(trip: "summer", stops: ["forest", "lake"]), on: .tablet)
    #expect(history.view(Trips.self).stops["spring"] == ["lake"])
    #expect(history.view(Trips.self).stops["summer"] == ["forest", "lake"])
}
// TestingViews-3 ends

// TestingViews-4 begins
@Test func bothDevicesShowTheMinutesOfBoth() async throws {
    let devices = try await DevicePair(
        rules: [.of(HabitDone.self, action: "DO_HABIT")], views: [Habits.self])
    try await devices.phone.append(HabitDone(habit: "reading", minutes: 20))
    devices.clock.advance(by: .seconds(60))
    try await devices.tablet.append(HabitDone(habit: "reading", minutes: 10))
    try await devices.sync()
    for store in [devices.phone, devices.tablet] {
        #expect(store.view(Habits.self).minutes["reading"] == 30)
    }
    try await devices.close()
}
// TestingViews-4 ends

// TestingViews-5 begins
extension Trait where Self == IssueHandlingTrait {
    /// Issues fail the run of a property; only those of the shrunk run are reported.
    static var quietShrinking: Self {
        .filterIssues { !Property.captureIssue(String(reflecting: $0)) }
    }
}

@Suite(.quietShrinking) struct HabitProperties {
    @Test func minutesAddUp() throws {
        try Property.check("minutes add up") { choices in
            let all = choices.array(0...5) { $0.int(in: 1...60) }
            var history = try SampleHistory()
            for minutes in all {
                try history.record(HabitDone(habit: "reading", minutes: minutes))
            }
            let sum = history.view(Habits.self).minutes["reading"] ?? 0
            #expect(sum == all.reduce(0, +))
        }
    }
}
// TestingViews-5 ends

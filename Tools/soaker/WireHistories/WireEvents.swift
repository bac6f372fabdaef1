// The events of WireHistory and ShippingRace: a mix as an app makes it. Some change notes that all devices
// share.

import DaybookOffline
import DaybookTestKit
import Foundation

/// A generator of a device's events.
package struct WireEvents {
    private let device: Int
    private var random: SeededRandom
    private var count = 0

    package init(device: Int, seed: UInt64) {
        self.device = device
        random = SeededRandom(seed: seed &+ UInt64(device) &* 0x9E37_79B9)
    }

    mutating func draw(_ bound: Int) -> Int { Int(random.next() % UInt64(bound)) }

    /// The next event, or what it is made of.
    package enum Next {
        /// A complete draft.
        case draft(EventDraft)
        /// A note and its new text; the draft depends on the device's views.
        case note(String, text: String)
    }

    /// Generates the next event. One in a hundred changes a note that all devices share.
    package mutating func next() throws -> Next {
        count += 1
        let text = "\(count) of device \(device), \(draw(1 << 20))"
        switch draw(100) {
        case 0: return .note("shared-\(draw(Self.sharedNotes))", text: text)
        case 1...3: return .note("own-\(device)-\(draw(Self.ownNotes))", text: text)
        case 4...24:
            return .draft(
                try EventDraft(
                    NoteAdded(
                        noteId: "note-\(device)-\(count)-\(draw(1 << 20))",
                        cityId: "city-\(draw(Self.cities))", content: text, createdBy: "ana")))
        case 25...34:
            return .draft(
                try EventDraft(
                    LessonCompleted(
                        userId: "ana", courseId: "spanish", lessonId: "lesson-\(draw(1_000))",
                        score: Double(draw(101)) / 100, durationSeconds: Double(draw(600)))))
        case 35...39:
            var changes = PreferencesUpdated.Changes()
            changes.pruneAfterDays = draw(365)
            if draw(2) == 0 { changes.autoSync = draw(2) == 0 }
            return .draft(try EventDraft(PreferencesUpdated(userId: "ana", changes: changes)))
        case 40...59:
            return .draft(
                try EventDraft(CityUnsaved(userId: "ana", cityId: "city-\(draw(Self.cities))")))
        default:
            return .draft(
                try EventDraft(CitySaved(userId: "ana", cityId: "city-\(draw(Self.cities))")))
        }
    }

    private static let sharedNotes = 8
    private static let ownNotes = 50
    private static let cities = 800
}

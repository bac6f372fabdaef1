// Events of all built-in types about few things, so that they meet: the same note, the same moment,
// ids that only look alike, data that break the rules. Feeds EventHistory.

import DaybookOffline
import DaybookTestKit
import Foundation

extension Choices {
    /// Identifiers that have little in common with each other but their looks.
    private static let hostileIDs = [
        "a", "b", "ab", "caf\u{E9}", "cafe\u{301}", "a\u{1}\"\\", "noteIdOf8Bytes", "noteIdOf",
    ]

    /// One of few identifiers; half of the time the same.
    package mutating func entityID() -> String {
        bool() ? element(of: Self.hostileIDs) : Self.hostileIDs[0]
    }

    /// The data of any shipped type.
    package mutating func shippedPayload() -> any EventPayload {
        let user = element(of: ["u", "caf\u{E9}", "cafe\u{301}"])
        switch int(in: 0...8) {
        case 0:
            return NoteUpdated(noteId: entityID(), content: "\(int(in: 0...99))", updatedBy: user)
        case 1:
            return NoteAdded(
                noteId: entityID(), cityId: entityID(), content: "\(int(in: 0...99))",
                createdBy: user)
        case 2:
            // Seldom: it puts an end to what may happen to a note.
            let note = entityID()
            return bool(oneIn: 4)
                ? NoteDeleted(noteId: note, deletedBy: user)
                : NoteUpdated(noteId: note, content: "", updatedBy: user)
        case 3: return CitySaved(userId: user, cityId: entityID())
        case 4: return CityUnsaved(userId: user, cityId: entityID())
        case 5: return PreferencesUpdated(userId: user, changes: preferenceChanges())
        case 6: return CourseActivated(userId: user, courseId: entityID())
        case 7:
            // Mostly one lesson: only a completion between its first and its last can go.
            return LessonCompleted(
                userId: bool(oneIn: 4) ? user : "u", courseId: bool(oneIn: 4) ? "d" : "c",
                lessonId: bool(oneIn: 4) ? "m" : "l",
                score: bool() ? Double(int(in: 0...3)) / 4 : nil)
        default:
            // Mostly one session: only a third completion of it supersedes another.
            return ReviewCompleted(
                userId: bool() ? "u" : user, courseId: entityID(),
                reviewId: bool(oneIn: 4) ? "s" : "r",
                itemsSeen: int(in: 5...9), itemsCorrect: int(in: 0...5))
        }
    }

    private mutating func preferenceChanges() -> PreferencesUpdated.Changes {
        var changes = PreferencesUpdated.Changes()
        changes.pruneAfterDays = int(in: 1...9)
        if bool() { changes.autoSync = bool() }
        if bool(oneIn: 3) { changes.wifiOnlyDownload = bool() }
        if bool(oneIn: 3) { changes.autoDownloadEnabled = bool() }
        if bool(oneIn: 3) { changes.showStaleDataWarning = bool() }
        if bool(oneIn: 3) { changes.maxStorageLimit = int(in: 0...9) }
        if bool(oneIn: 3) { changes.pruneAfterDays = nil }
        if changes == PreferencesUpdated.Changes() { changes.autoSync = true }
        return changes
    }

    /// The data of any type that stays on the device.
    package mutating func keptPayload() -> any EventPayload {
        let city = entityID()
        switch int(in: 0...2) {
        case 0: return CityRemoved(cityId: city, reason: element(of: CityRemoved.Reason.allCases))
        case 1: return CityAccessed(cityId: city)
        default:
            return CityCached(
                cityId: city, version: int(in: 1...3), isExplicitDownload: bool(),
                cityData: CityData(
                    id: city, name: "\(int(in: 0...9))", country: "", description: "",
                    costOfLiving: 0.5, internetSpeed: 1, safetyRating: -1, climate: ""
                ).json,
                images: array(0...2) { choices in
                    CachedImage(
                        id: choices.entityID(), url: "https://x.example/1",
                        file: FileID(of: [UInt8(choices.int(in: 0...3))]),
                        size: choices.int(in: 0...9),
                        kind: choices.element(of: CachedImage.Kind.allCases), width: 2, height: 3)
                })
        }
    }

    /// An event of any kind: most are shipped, some are not, some break the rules of their type.
    package mutating func draft(time: ClosedRange<Int> = 0...9) throws -> EventDraft {
        let kind = int(in: 0...29)
        var draft: EventDraft
        switch kind {
        case 12: draft = try EventDraft(settingPayload())
        case 13: draft = try EventDraft(downloadPayload())
        case 14...16: draft = try EventDraft(keptPayload())
        case 17:
            draft = EventDraft(
                type: "com.example.\(entityID())", subject: "s", data: .json(Array("{}".utf8)))
        case 18: draft = try EventDraft(contentPayload())
        case 19: draft = try EventDraft(learningPayload())
        case 20: draft = try EventDraft(imagePayload())
        case 21: draft = try EventDraft(mediaPayload())
        case 22: draft = brokenDraft()
        default: draft = try EventDraft(shippedPayload())
        }
        draft.id = UUID(integer: UInt128(bits()) << 64 | UInt128(bits()))
        draft.time = Timestamp(milliseconds: Int64(int(in: time)))
        return draft
    }

    private mutating func brokenDraft() -> EventDraft {
        let (type, data) = element(of: [
            ("city.saved", #"{"userId":"u"}"#), ("city.unsaved", #"{"userId":"u","cityId":""}"#),
            ("note.added", #"{"noteId":"a","cityId":"c","createdBy":"u"}"#),
            ("note.updated", #"{"noteId":"a","content":null,"updatedBy":"u"}"#),
            ("note.deleted", #"{"noteId":"a"}"#),
            ("preferences.updated", #"{"userId":"u","changes":{"autoSync":"yes"}}"#),
            ("course.activated", "[]"), ("setting.put", #"{"key":"a","value":null}"#),
            ("lesson.completed", #"{"userId":"u","courseId":"c","lessonId":"l","score":2}"#),
            (
                "review.completed",
                #"{"userId":"u","courseId":"c","reviewId":"r","itemsSeen":3,"itemsCorrect":4}"#
            ), ("download.queued", #"{"jobId":"A","cityId":"c","isExplicit":true}"#),
            (
                "download.started",
                #"{"jobId":"00000000-0000-4000-8000-00000000000a","currentStep":"","#
                    + #""totalBytes":1,"downloadedBytes":2}"#
            ), ("image.cached", #"{"kind":"thumbnail","id":"a","file":"","size":1}"#),
            ("image.removed", #"{"kind":"cover","id":"a","reason":"user"}"#),
            ("images.cleared", #"{"kinds":[]}"#),
            ("user.stored", #"{"userId":"u","info":null}"#),
            ("lesson.stored", #"{"courseId":"c","lessonId":"l","content":[],"isExplicit":true}"#),
            ("review.removed", #"{"userId":"u"}"#),
        ])
        return EventDraft(type: "daybook.\(type)", subject: "a", data: .json(Array(data.utf8)))
    }
}

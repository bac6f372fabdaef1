// Events of all built-in types about few subjects, so that they affect each other: the same note, the same
// time, ids that only look alike, data that break the rules.

import DaybookOffline
import DaybookTestKit
import Foundation

extension Choices {
    /// Draws one of few identifiers; half of the time the first.
    package mutating func entityID() -> String {
        bool() ? element(of: Self.hostileIdentifiers) : Self.hostileIdentifiers[0]
    }

    /// Draws data of one of several types. A type that occurs twice is drawn twice as often.
    mutating func payload(
        ofAny types: [any DeclaredPayload.Type],
        identifiers: [String] = Self.hostileIdentifiers
    ) throws -> any EventPayload {
        func draw<Payload: DeclaredPayload>(
            _ type: Payload.Type, _ choices: inout Choices
        ) throws -> any EventPayload {
            try choices.payload(type, identifiers: identifiers)
        }
        let type = element(of: types)
        return try draw(type, &self)
    }

    /// The model's shipped types, without those that `shippedPayload` draws separately.
    private static let shipped = OfflineModel.catalogue.types.filter {
        OfflineModel.catalogue[$0]?.action != nil && $0 != NoteDeleted.type
            && $0 != LessonCompleted.type && $0 != ReviewCompleted.type
    }.compactMap { OfflineModel.catalogue[$0]?.payload as? any DeclaredPayload.Type }

    /// Draws the data of any shipped type.
    package mutating func shippedPayload() throws -> any EventPayload {
        switch int(in: 0...11) {
        case 0:
            // Rare, because later events of the note have no effect.
            return bool(oneIn: 4)
                ? try payload(NoteDeleted.self) : try payload(NoteUpdated.self)
        case 1, 2:
            // Mostly one lesson: compaction removes only completions between its first and its last.
            var lesson = try payload(LessonCompleted.self)
            if !bool(oneIn: 4) { (lesson.userId, lesson.courseId) = ("u", "c") }
            if !bool(oneIn: 4) { lesson.lessonId = "l" }
            return lesson
        case 3, 4:
            // Mostly one session: only a third completion of a session supersedes another.
            var review = try payload(ReviewCompleted.self)
            if bool() { review.userId = "u" }
            if !bool(oneIn: 4) { review.reviewId = "r" }
            return review
        default: return try payload(ofAny: Self.shipped)
        }
    }

    /// Draws the data of any type that stays on the device.
    package mutating func keptPayload() throws -> any EventPayload {
        switch int(in: 0...2) {
        case 0: return try payload(CityRemoved.self)
        case 1: return try payload(CityAccessed.self)
        default:
            let city = entityID()
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

    /// Draws an event of any type: most are shipped, some are not, some break the rule of their type.
    package mutating func draft(time: ClosedRange<Int> = 0...9) throws -> EventDraft {
        let kind = int(in: 0...29)
        var draft: EventDraft
        switch kind {
        case 12: draft = try EventDraft(settingPayload())
        case 13: draft = try EventDraft(try downloadPayload())
        case 14...16: draft = try EventDraft(try keptPayload())
        case 17:
            draft = EventDraft(
                type: "com.example.\(entityID())", subject: "s", data: .json(Array("{}".utf8)))
        case 18: draft = try EventDraft(contentPayload())
        case 19: draft = try EventDraft(try learningPayload())
        case 20: draft = try EventDraft(try imagePayload())
        case 21: draft = try EventDraft(try mediaPayload())
        case 22: draft = brokenDraft()
        default: draft = try EventDraft(try shippedPayload())
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

// Draws the events of a StoreHistory: valid ones in all forms, recorded ones again, and invalid ones that the
// store must refuse.

import DaybookOffline
import DaybookTestKit
import Foundation

extension Choices {
    /// Draws the content of any shipped event.
    mutating func fact() -> Fact {
        let user = identifier()
        switch int(in: 0...9) {
        case 0, 1: return .city(user: user, city: identifier(), isSaved: !bool(oneIn: 3))
        case 2:
            return .noteAdded(
                note: identifier(), city: identifier(), content: content(), user: user)
        case 3, 4: return .noteUpdated(note: identifier(), content: content(), user: user)
        case 5: return .noteDeleted(note: identifier(), user: user)
        case 6: return .preferences(user: user, settings(valid: false))
        case 7: return .trip(name: identifier())
        default: return progressFact()
        }
    }

    mutating func progressFact() -> Fact {
        let (user, course) = (identifier(), identifier())
        switch int(in: 0...2) {
        case 0: return .course(user: user, course: course)
        case 1:
            return .lesson(
                user: user, course: course, lesson: identifier(),
                score: bool() ? int(in: 0...4) : nil)
        default:
            let seen = int(in: 0...9)
            return .review(
                user: user, course: course, review: identifier(), seen: seen,
                correct: int(in: 0...seen))
        }
    }

    /// Draws at least one setting.
    mutating func settings(valid: Bool) -> [String: Int] {
        var settings: [String: Int] = [:]
        for name in Fact.flags where bool() { settings[name] = int(in: 0...1) }
        if bool() { settings["pruneAfterDays"] = valid ? int(in: 1...90) : int(in: 0...900) }
        if bool(oneIn: 3) || settings.isEmpty {
            settings["maxStorageLimit"] =
                valid
                ? element(of: [52_428_800, 524_288_000, 99_999_999])
                : element(of: [0, 10, Int.max])
        }
        return settings
    }
}

extension StoreHistory {
    /// Makes a unique id of version 4.
    private mutating func makeID() -> UUID {
        idCount += 1
        var random = SeededRandom(seed: idCount)
        var bytes = withUnsafeBytes(of: (random.next(), random.next())) { Array($0) }
        bytes[6] = bytes[6] & 0x0F | 0x40
        bytes[8] = bytes[8] & 0x3F | 0x80
        let hex = bytes.map { String(format: "%02x", $0) }.joined()
        let parts = [(0, 8), (8, 4), (12, 4), (16, 4), (20, 12)].map { start, count in
            String(hex.dropFirst(start).prefix(count))
        }
        return UUID(uuidString: parts.joined(separator: "-")) ?? UUID()
    }

    /// Draws a valid event of any type.
    mutating func draft(_ choices: inout Choices) -> ModelDraft {
        if choices.bool(oneIn: 4) { return draftOfOtherType(&choices) }
        let (fact, json) = choices.spelled(choices.fact())
        var draft = EventDraft(id: makeID(), type: fact.type, data: .json(Array(json.utf8)))
        if choices.bool(oneIn: 5), let expected = fact.subjectAndLane {
            draft.subject = expected.subject.string
        }
        // The rule of the type replaces the lane.
        if choices.bool(oneIn: 5) { draft.lane = choices.identifier().string }
        setOptionalAttributes(&draft, &choices)
        return ModelDraft(draft: draft, fact: fact)
    }

    /// Draws an event of an unknown type.
    private mutating func draftOfOtherType(_ choices: inout Choices) -> ModelDraft {
        let type = choices.element(of: [
            "com.example.other", "daybook.page.pinned", "daybook.note.pinned", "\u{1F9ED}",
            "x\u{0}",
            "com.example.cafe\u{301}", "daybook.note.added.v2",
        ])
        var draft = EventDraft(id: makeID(), type: type)
        if choices.bool() { draft.subject = choices.identifier().string }
        if choices.bool(oneIn: 3) { draft.lane = choices.identifier().string }
        switch choices.int(in: 0...7) {
        case 0: break
        case 1: draft.data = .base64(Array("\"AAEC/+8=\"".utf8))
        case 2: draft.data = .base64(Array("\"\"".utf8))
        case 3:
            draft.dataContentType = choices.element(of: ["text/plain", "application/json", "x\"\n"])
            draft.data = .json(Array(Spelling.fullyEscaped(choices.identifier()).utf8))
        case 4:
            let depth = choices.element(of: [1, 63])
            draft.data = .json(
                Array(
                    (String(repeating: "[", count: depth) + String(repeating: "]", count: depth))
                        .utf8))
        case 5:
            draft.data = .json(
                Array(
                    choices.element(of: ["0", "-0.0", "1e400", "null", "true", "\"\\ud800\"", "{}"])
                        .utf8))
        default:
            draft.data = .json(
                Array(("[" + Spelling.minimallyEscaped(choices.content()) + "]").utf8))
        }
        setOptionalAttributes(&draft, &choices)
        return ModelDraft(draft: draft)
    }

    /// Sets the time and extensions of some drafts.
    private mutating func setOptionalAttributes(_ draft: inout EventDraft, _ choices: inout Choices)
    {
        if choices.bool(oneIn: 4) {
            let offsets: [Int64] = [0, -1_000, 299_999, 300_001, 86_400_000, -86_400_000_000]
            let time = choices.element(of: [model.now, model.now, 0, -1, -62_167_219_200_000])
            draft.time = Timestamp(milliseconds: time + choices.element(of: offsets))
        }
        if choices.bool(oneIn: 5) {
            draft.extensions = [
                .init(name: "a", string: choices.identifier().string),
                .init(
                    name: "abcdefghij0123456789",
                    json: Array(choices.element(of: ["1.50", "true", "\"\\u0000\""]).utf8)),
            ]
        }
    }

    mutating func batch(_ choices: inout Choices) -> [ModelDraft] {
        var batch = choices.array(0...12) { draft(&$0) }
        if choices.bool(oneIn: 4), let twin = batch.first {
            batch.append(choices.bool(oneIn: 3) ? Self.alteredDraft(twin, &choices) : twin)
        }
        if choices.bool(oneIn: 6), let resent = resentDraft(&choices, altered: false) {
            batch.append(resent)
        }
        return batch
    }

    /// Draws an event of more than a block, whose commit gets a separate frame.
    mutating func bigDraft(_ choices: inout Choices) -> ModelDraft {
        let bytes = choices.bytes(count: choices.element(of: [46_000, 70_000, 190_000]))
        return ModelDraft(
            draft: EventDraft(
                id: makeID(), type: "com.example.big",
                data: .base64(Array("\"\(Data(bytes).base64EncodedString())\"".utf8))))
    }

    /// Draws an event whose line has exactly the highest allowed number of bytes, or one more.
    mutating func draftAtSizeLimit(_ choices: inout Choices) -> ModelDraft {
        let isShipped = choices.bool()
        let lineBytes = (isShipped ? 262_144 : 1_048_576) + choices.int(in: 0...1)
        let id = makeID()
        func draft(_ padding: Int) -> ModelDraft {
            let text = Text(String(repeating: "x", count: padding))
            let fact = Fact.noteUpdated(note: Text("a"), content: text, user: Text("a"))
            let json = "{\"noteId\":\"a\",\"updatedBy\":\"a\",\"content\":\"\(text.string)\"}"
            return ModelDraft(
                draft: EventDraft(
                    id: id, type: isShipped ? fact.type : "com.example.big",
                    data: .json(Array(json.utf8))),
                fact: isShipped ? fact : .other)
        }
        var alone = StoreModel()
        _ = alone.append([draft(0)])
        return draft(lineBytes - (alone.lines.first?.text.count ?? 0))
    }

    /// Draws an event that is recorded already: with the same content, possibly without its time or with
    /// other white space; or, if `altered`, with different content.
    mutating func resentDraft(_ choices: inout Choices, altered: Bool) -> ModelDraft? {
        guard !model.lines.isEmpty else { return nil }
        let line = model.lines[choices.int(in: 0...model.lines.count - 1)]
        guard line.draft.draft.type != SyncSettled.type, line.draft.draft.id == line.id else {
            return nil
        }
        var resent = line.draft
        guard !altered else { return Self.alteredDraft(resent, &choices) }
        if choices.bool() { resent.draft.time = nil }
        if choices.bool(), case .json(let json) = resent.draft.data,
            json.first == UInt8(ascii: "{")
        {
            resent.draft.data = .json(Array("{ \n".utf8) + json.dropFirst())
        }
        return resent
    }

    private static func alteredDraft(_ draft: ModelDraft, _ choices: inout Choices) -> ModelDraft {
        var altered = draft
        switch choices.int(in: 0...2) {
        case 0: altered.draft.extensions.append(.init(name: "other", string: "x"))
        case 1:
            let time = draft.draft.time?.milliseconds ?? 0
            altered.draft.time = Timestamp(milliseconds: time + 1)
        default:
            if case .json(let json) = draft.draft.data, json.starts(with: Array("{\"".utf8)) {
                altered.draft.data = .json(Array("{\"zz\":0,".utf8) + json.dropFirst())
            } else {
                altered.draft.dataContentType = "text/other"
            }
        }
        return altered
    }

    /// Draws an event that the store must refuse, with the code of the refusal.
    mutating func invalidDraft(_ choices: inout Choices) -> ModelDraft {
        var bad = ModelDraft(
            draft: EventDraft(
                id: makeID(), type: "com.example.other", data: .json(Array("{}".utf8))),
            refusal: .badAttribute)
        switch choices.int(in: 0...12) {
        case 0: bad.draft.type = ""
        case 1: bad.draft.subject = ""
        case 2: bad.draft.lane = ""
        case 3:
            // There is no version 9.
            bad.draft.id = UUID(uuid: (1, 2, 3, 4, 5, 6, 0x90, 8, 0x80, 10, 11, 12, 13, 14, 15, 16))
        case 4:
            let name = choices.element(of: [
                "", "A", "type", "id", "data", "a-b", "abcdefghij01234567890", "\u{E9}",
                "a\":1,\"b",
            ])
            bad.draft.extensions = [.init(name: name, string: "x")]
        case 5:
            bad.draft.extensions = [.init(name: "a", string: "1"), .init(name: "a", string: "1")]
        case 6:
            let json = choices.element(of: [
                "", "{", "{}}", "nul", "[1,]", "\"\u{1}\"", "01", "{\"a\":1} x",
            ])
            bad.draft.data = .json(Array(json.utf8))
            bad.refusal = .notJSON
        case 7:
            bad.draft.data = .json([0x22, 0xC3, 0x28, 0x22])
            bad.refusal = .notJSON
        case 8:
            bad.draft.data = .json(
                Array((String(repeating: "[", count: 65) + String(repeating: "]", count: 65)).utf8))
            bad.refusal = .notJSON
        case 11:
            // The text after the object would become members of the line.
            let json = choices.element(of: ["{},\"type\":\"x\"", "{},\"zz\":1", "1,\"data\":2"])
            bad.draft.data = .json(Array(json.utf8))
        case 9: bad.draft.data = .base64(Array(choices.element(of: ["\"*\"", "1", "null"]).utf8))
        case 10:
            bad.draft = EventDraft(
                id: bad.draft.id, type: "daybook.city.saved", subject: choices.bool() ? nil : "a",
                data: .json(
                    Array(
                        choices.element(of: [
                            "{}", "[]", "null", #"{"userId":"a","cityId":""}"#,
                            #"{"userId":null,"cityId":"a"}"#, #"{"userId":"a","cityId":1}"#,
                            #"{"userId":"a","userId":"a","cityId":"a"}"#,
                        ]).utf8)))
            bad.refusal = .invalidData
        default:
            bad.draft = EventDraft(
                id: bad.draft.id, type: "daybook.city.saved", subject: "caf\u{E9}",
                data: .json(Array("{\"userId\":\"a\",\"cityId\":\"cafe\u{301}\"}".utf8)))
            bad.refusal = .invalidData
        }
        return bad
    }

    /// Draws a change of an existing note, or a new note.
    func noteCommand(_ choices: inout Choices) -> Fact {
        let live = model.views.notes.keys.filter { model.views.liveNote($0) != nil }.sorted()
        let user = choices.identifier()
        guard !live.isEmpty, choices.bool() else {
            return .noteAdded(
                note: Text(""), city: choices.identifier(), content: choices.content(), user: user)
        }
        let note = choices.element(of: live)
        return choices.bool(oneIn: 4)
            ? .noteDeleted(note: note, user: user)
            : .noteUpdated(note: note, content: choices.content(), user: user)
    }

    /// Draws a command that the store must refuse before it records an event.
    func refusedCommand(_ choices: inout Choices) -> Command {
        let (empty, a) = (Text(""), Text("a"))
        switch choices.int(in: 0...7) {
        case 0: return .feature(.city(user: empty, city: a, isSaved: choices.bool()))
        case 1: return .feature(.city(user: a, city: Text("nowhere"), isSaved: false))
        case 2: return .feature(.noteUpdated(note: Text("nothing"), content: empty, user: a))
        case 3: return .feature(.noteDeleted(note: empty, user: a))
        case 4:
            return .feature(
                .lesson(user: a, course: a, lesson: a, score: choices.element(of: [-1, 5])))
        case 5:
            return .feature(
                .review(
                    user: a, course: a, review: a, seen: 1, correct: choices.element(of: [2, -1])))
        case 6:
            return .setPreferences(
                a, choices.bool() ? ["pruneAfterDays": 91] : ["maxStorageLimit": 52_428_799])
        default: return .feature(.course(user: a, course: empty))
        }
    }
}

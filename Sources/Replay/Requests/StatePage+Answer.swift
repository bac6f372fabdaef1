// The states in an answer of an app's own API. Part of RequestTransport+Reading. Spec/protocol/reading.md, READ-2.

import EventSourcing
import Foundation
import LogFormat

extension StatePage {
    /// Reads the elements of an answer. An element that cannot be read is counted and left out.
    ///
    /// - Throws: `EventError` (`invalidData`) if the answer has no list; what the app's `next` throws.
    init(_ answer: APIAnswer, _ source: PullSource, _ context: PullContext) throws {
        let elements = try Self.elements(of: answer, source.list)
        count = elements.count
        isWhole = answer.status == 200
        next = try source.next(answer)
        tag = answer[header: "ETag"]
        for element in elements {
            do {
                guard let state = try source.state(element, context) else { continue }
                guard !source.form.isSinceNumber || state.apiVersion.number != nil else {
                    throw EventError(.invalidData, "the version is no number, as this list needs")
                }
                newest = [newest, state.apiVersion.number].compactMap(\.self).max()
                states.append(try EventDraft(state: state))
            } catch is RequestNotReady { notReady += 1 } catch {
                unusable += 1
                firstFault = firstFault ?? "\(error)"
            }
        }
    }

    /// The texts of the elements.
    private static func elements(
        of answer: APIAnswer, _ list: String?
    ) throws(EventError) -> [[UInt8]] {
        var body = answer.body
        if let list {
            guard let member = try JSONFields(body, path: "the answer").raw(named: list) else {
                throw EventError(.invalidData, "the answer has no member \(list)")
            }
            body = Array(member)
        }
        let text = body.span.bytes
        var elements: [[UInt8]] = []
        var scanner = JSONScanner(levelsMax: JSONScanner.levelsMax + 2)
        guard scanner.peek(text) == UInt8(ascii: "[") else {
            throw EventError(.invalidData, "the answer has no list")
        }
        do throws(JSONError) {
            try scanner.elements(text) { (scanner) throws(JSONError) in
                elements.append(Array(body[try scanner.value(text, depth: 1)]))
            }
            try scanner.expectEnd(text)
        } catch { throw EventError(.invalidData, "the answer is no JSON") }
        return elements
    }
}

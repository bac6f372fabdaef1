// What is done to replies, and what answers in the server's place. Part of SimulatedNetwork; pure.

import Daybook
import Foundation

/// Wrong answers.
enum ReplyDamage {
    /// An answer that is not the server's.
    static func answer(of fault: NetworkFault, _ choices: inout Choices) -> TransportReply {
        func status(_ all: [Int]) -> TransportReply {
            TransportReply(status: choices.element(of: all), body: Array("{}".utf8))
        }
        switch fault {
        case .redirect: return status([302, 301, 307, 308, 304])
        case .malformedRequest: return status([400, 422])
        case .unauthorized: return status([401])
        case .wrongEndpoint: return status([404, 403, 405, 409, 410, 415])
        case .tooLarge: return status([413])
        case .serverError: return status([500, 502, 504, 599, 100, 204, 206, 0, -1])
        case .overloaded:
            var reply = status([429, 503])
            reply.retryAfterSeconds = choices.element(of: [
                1, nil, 0, 4, 30, 7_200, -5, .infinity, .nan, 1e300,
            ])
            return reply
        default:  // The portal has a clock, too.
            return TransportReply(
                status: 200, body: Array("<html><body>Welcome!</body></html>".utf8),
                date: Int64(choices.int(in: 0...4_000_000_000)) * 1_000)
        }
    }

    /// A server's answer, damaged.
    static func damage(
        _ reply: TransportReply, _ fault: NetworkFault, _ choices: inout Choices
    ) -> TransportReply {
        var reply = reply
        switch fault {
        case .replyTruncated:
            if !reply.body.isEmpty {
                reply.body = Array(reply.body.prefix(choices.int(in: 0...reply.body.count - 1)))
            }
        case .replyGarbled:
            // Not a single one: that could by chance turn one word of a server into another.
            let start = choices.int(in: 0...max(0, reply.body.count - 1))
            for index in reply.body[start...].prefix(8).indices { reply.body[index] = 0x07 }
        case .replyMalformed:
            reply.body = Array(
                choices.element(of: [
                    "", "[]", "{}", "null", #"{"verdicts":{}}"#, #"{"verdicts":[null]}"#,
                    #"{"verdicts":[{"id":"nobody"}]}"#, #"{"verdicts":[]}"#, #"{"verdicts":[{}]}"#,
                    #"{"verdicts":[],"verdicts":[]}"#,
                ]).utf8)
        case .wrongDate:
            reply.date =
                (reply.date ?? 0) + (choices.bool() ? 1 : -1)
                * Int64(choices.int(in: 0...4_000_000_000)) * 1_000
        default:
            guard reply.status == 200, let verdicts = Verdict.parse(reply.body) else { break }
            reply.body = json(edit(verdicts, fault, &choices))
        }
        return reply
    }

    private static func edit(
        _ verdicts: [Verdict], _ fault: NetworkFault, _ choices: inout Choices
    ) -> [Verdict] {
        switch fault {
        case .verdictsMissing: return verdicts.filter { _ in choices.bool() }
        case .verdictsUnprocessed, .verdictsRetry:
            let isAll = choices.bool()
            return verdicts.map { verdict in
                guard isAll || choices.bool() else { return verdict }
                var verdict = Verdict(
                    id: verdict.id, status: fault == .verdictsRetry ? .retry : .unprocessed)
                if fault == .verdictsRetry, choices.bool() {
                    verdict.retryAfterSeconds = choices.element(of: [1, 0, 6, 9_000, -1, 1e300])
                }
                return verdict
            }
        default:
            var verdicts = verdicts
            for _ in 0..<choices.int(in: 0...3) where !verdicts.isEmpty {
                let place = choices.int(in: 0...verdicts.count - 1)
                switch choices.int(in: 0...2) {
                case 0: verdicts.append(verdicts.remove(at: place))
                case 1: verdicts.insert(verdicts[place], at: 0)
                default:
                    let status = choices.element(of: [Verdict.Status.applied, .rejected, .retry])
                    let stranger = UUID(integer: UInt128(choices.bits()) << 64)
                    verdicts.insert(Verdict(id: stranger, status: status), at: place)
                }
            }
            return verdicts
        }
    }

    /// Verdicts as a server writes them, without `current`; sometimes with a word that is not known.
    private static func json(_ verdicts: [Verdict]) -> [UInt8] {
        let list = verdicts.map { verdict in
            var writer = JSONObjectWriter()
            writer.add("id", verdict.id.text)
            let isOdd = verdict.status == .unprocessed && verdict.id.integer % 2 == 0
            writer.add("status", isOdd ? "pondered" : verdict.status.rawValue)
            if let code = verdict.code { writer.add("code", code) }
            if let detail = verdict.detail { writer.add("detail", detail) }
            if let seconds = verdict.retryAfterSeconds { writer.add("retryAfterSeconds", seconds) }
            return writer.finished()
        }
        var writer = JSONObjectWriter()
        writer.add("verdicts", raw: JSONObjectWriter.array(list))
        return writer.finished()
    }
}

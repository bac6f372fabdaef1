// The replies of SimulatedNetwork that are damaged, or do not come from the server.

import Daybook
import Foundation

/// Functions that make wrong replies.
enum ReplyDamage {
    /// Makes a reply that does not come from the server.
    static func makeReply(for fault: NetworkFault, _ choices: inout Choices) -> TransportReply {
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
        default:  // A captive portal sends a date as well.
            return TransportReply(
                status: 200, body: Array("<html><body>Welcome!</body></html>".utf8),
                date: Int64(choices.int(in: 0...4_000_000_000)) * 1_000)
        }
    }

    /// Damages a reply of the server.
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
            // Up to eight bytes: one alone could turn a status into another valid one.
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
            reply.body = json(editVerdicts(verdicts, fault, &choices))
        }
        return reply
    }

    private static func editVerdicts(
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
                let index = choices.int(in: 0...verdicts.count - 1)
                switch choices.int(in: 0...2) {
                case 0: verdicts.append(verdicts.remove(at: index))
                case 1: verdicts.insert(verdicts[index], at: 0)
                default:
                    let status = choices.element(of: [Verdict.Status.applied, .rejected, .retry])
                    let unknownID = UUID(integer: UInt128(choices.bits()) << 64)
                    verdicts.insert(Verdict(id: unknownID, status: status), at: index)
                }
            }
            return verdicts
        }
    }

    /// The JSON of verdicts as a server writes it, without `current`; half of the `unprocessed` ones get an
    /// unknown status.
    private static func json(_ verdicts: [Verdict]) -> [UInt8] {
        let list = verdicts.map { verdict in
            var writer = JSONObjectWriter()
            writer.appendMember("id", verdict.id.text)
            let isUnknown = verdict.status == .unprocessed && verdict.id.integer % 2 == 0
            writer.appendMember("status", isUnknown ? "pondered" : verdict.status.rawValue)
            if let code = verdict.code { writer.appendMember("code", code) }
            if let detail = verdict.detail { writer.appendMember("detail", detail) }
            if let seconds = verdict.retryAfterSeconds {
                writer.appendMember("retryAfterSeconds", seconds)
            }
            return writer.finished()
        }
        var writer = JSONObjectWriter()
        writer.appendMember("verdicts", raw: JSONObjectWriter.array(list))
        return writer.finished()
    }
}

// The replies of this server: JSON in one buffer, so that head and body leave in one write. Large
// replies leave as the client takes them, and hold on to what they have borrowed for so long.

import EventSourcing
import Hummingbird
import SyncServerAdmission

/// Makes replies.
enum Reply {
    /// A reply with a JSON body.
    static func json(
        _ status: HTTPResponse.Status, _ body: [UInt8],
        contentType: String = "application/json", headers: HTTPFields = [:]
    ) -> Response {
        var headers = headers
        headers[.contentType] = contentType
        headers[.cacheControl] = "no-store"
        return Response(
            status: status, headers: headers, body: .init(byteBuffer: ByteBuffer(bytes: body)))
    }

    /// Bytes that are handed over for sending at once.
    private static let pieceBytes = 64 * 1024

    /// A reply with a JSON body that may be large.
    ///
    /// - Parameter loans: released when all but the last piece has been taken by the client; at once
    ///   if there is only one piece.
    static func large(
        _ body: [UInt8], contentType: String = "application/json", headers: HTTPFields = [:],
        holding loans: [Loan]
    ) -> Response {
        guard body.count > pieceBytes else {
            for loan in loans { loan.release() }
            return json(.ok, body, contentType: contentType, headers: headers)
        }
        var reply = json(.ok, [], contentType: contentType, headers: headers)
        reply.headers[.contentLength] = String(body.count)
        reply.body = ResponseBody(contentLength: body.count) { writer in
            defer { for loan in loans { loan.release() } }
            for start in stride(from: 0, to: body.count, by: pieceBytes) {
                // A copy: a slice of one buffer would keep all of it until the last piece has gone.
                let piece = body[start..<min(start + pieceBytes, body.count)]
                try await writer.write(ByteBuffer(bytes: piece))
            }
            try await writer.finish(nil)
        }
        return reply
    }

    /// The reply to a refused request.
    static func error(_ error: RequestError) -> Response {
        var body = Array("{\"error\":{\"code\":".utf8)
        JSONText.append(error.code, to: &body)
        body.append(contentsOf: Array(",\"detail\":".utf8))
        JSONText.append(error.detail, to: &body)
        body.append(contentsOf: Array("}}".utf8))
        return json(error.status, body, headers: error.headers)
    }
}

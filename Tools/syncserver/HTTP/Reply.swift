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

    /// A reply with a large JSON body.
    ///
    /// - Parameter loans: released when all but the last piece has been taken by the client.
    static func pages(
        _ body: [UInt8], contentType: String, headers: HTTPFields, holding loans: [Loan]
    ) -> Response {
        var reply = json(.ok, [], contentType: contentType, headers: headers)
        let buffer = ByteBuffer(bytes: body)
        reply.headers[.contentLength] = String(buffer.readableBytes)
        reply.body = ResponseBody(contentLength: buffer.readableBytes) { writer in
            defer { for loan in loans { loan.release() } }
            var rest = buffer
            while let piece = rest.readSlice(length: min(pieceBytes, rest.readableBytes)),
                piece.readableBytes > 0
            { try await writer.write(piece) }
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

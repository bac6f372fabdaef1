// The replies of this server: JSON in one buffer, so that head and body leave in one write.

import EventSourcing
import Hummingbird

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

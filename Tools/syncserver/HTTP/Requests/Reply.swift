// The replies of this server. A JSON reply has one buffer, so that head and body are sent in one write.
// A large reply is sent as fast as the client reads, and holds its loans for so long.

import EventSourcing
import Hummingbird
import NIOCore
import SyncServerAdmission
import SyncWire

/// Functions that build replies.
enum Reply {
    /// Builds a reply with a JSON body.
    static func json(
        _ status: HTTPResponse.Status, _ body: [UInt8],
        contentType: String = WireType.json, headers: HTTPFields = [:]
    ) -> Response {
        var headers = headers
        headers[.contentType] = contentType
        headers[.cacheControl] = "no-store"
        return Response(
            status: status, headers: headers, body: .init(byteBuffer: ByteBuffer(bytes: body)))
    }

    /// The bytes that are passed to the network at once.
    private static let pieceBytes = 64 * 1024

    /// Builds a reply with a JSON body that may be large.
    ///
    /// - Parameters:
    ///   - loans: released when the client has read all but the last piece; at once if there is only one
    ///     piece.
    ///   - loop: the loop of the connection.
    ///   - check: called before each piece. If it throws, the connection ends.
    static func large(
        _ body: [UInt8], contentType: String = WireType.json, headers: HTTPFields = [:],
        holding loans: [Loan], on loop: any EventLoop,
        check: @escaping @Sendable () throws(RequestError) -> Void
    ) -> Response {
        guard body.count > pieceBytes else {
            for loan in loans { loan.release() }
            return json(.ok, body, contentType: contentType, headers: headers)
        }
        var reply = json(.ok, [], contentType: contentType, headers: headers)
        reply.headers[.contentLength] = String(body.count)
        reply.body = ResponseBody(contentLength: body.count) { writer in
            defer { for loan in loans { loan.release() } }
            try await write(body, to: &writer, on: loop, check: check)
            try await writer.finish(nil)
        }
        return reply
    }

    /// Writes bytes as fast as the client reads. Returns when it has read all but the last piece.
    ///
    /// - Parameters:
    ///   - loop: the loop of the connection.
    ///   - check: called before each piece.
    /// - Throws: what `check` throws.
    static func write(
        _ bytes: [UInt8], to writer: inout any ResponseBodyWriter, on loop: any EventLoop,
        check: @Sendable () throws(RequestError) -> Void
    ) async throws {
        for start in stride(from: 0, to: bytes.count, by: pieceBytes) {
            try check()
            // A copy: a slice would keep the whole buffer in memory until the last piece is sent.
            let piece = bytes[start..<min(start + pieceBytes, bytes.count)]
            try await writer.write(ByteBuffer(bytes: piece))
            // A writer waits for a client that does not read only after the loop has tried to send. While the loop
            // is busy, it takes any number of pieces into memory.
            try await loop.submit {}.get()
        }
    }

    /// Builds the reply to a refused request.
    static func error(_ error: RequestError) -> Response {
        var body = Array("{\"error\":{\"code\":".utf8)
        JSONText.append(error.code, to: &body)
        body.append(contentsOf: Array(",\"detail\":".utf8))
        JSONText.append(error.detail, to: &body)
        body.append(contentsOf: Array("}}".utf8))
        return json(error.status, body, headers: error.headers)
    }
}

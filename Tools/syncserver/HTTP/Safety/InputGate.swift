// Bounds the buffered input of a connection: the first handler after TLS, before HTTP's parser. The
// parser buffers incomplete input without limit, and parsed parts wait in memory for a request handler.
// So the gate passes on one head at a time, in small pieces, and only when ConnectionGuard has opened
// it. While it is closed nothing more is read, so further input stays with the client.
// Spec/operations/operating.md, OPS-20.

import Foundation
import NIOCore

/// Passes input to the HTTP parser in small pieces.
final class InputGate: ChannelDuplexHandler, RemovableChannelHandler {
    typealias InboundIn = ByteBuffer
    typealias InboundOut = ByteBuffer
    typealias OutboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    /// The error for a request of more than `requestBytesMax` bytes.
    struct Overflow: Error {}

    private enum State {
        case open
        case closed
        /// Input is discarded, and no more is read.
        case done
    }

    /// The most bytes of a piece.
    private static let pieceBytes = 4 * 1024
    /// The end of a head. A piece ends there, so it completes at most one head, and the gate is closed
    /// before the next one.
    private static let headEnd = Array("\r\n\r\n".utf8)
    /// The most buffered bytes. More arrive only if the client closes its side of the connection while
    /// the gate is closed: then the system delivers all that it has.
    private static let heldBytesMax = 256 * 1024
    /// The most bytes of a request's head and body on the network. Most clients that are refused early
    /// continue to send, and read the reply afterwards.
    static let requestBytesMax = 4 * 1024 * 1024

    private var context: ChannelHandlerContext?
    private var state = State.open
    private var held = ByteBuffer()
    /// The number of bytes of `headEnd` at the end of the last piece.
    private var headEndBytes = 0
    private var requestBytes = 0
    private var isTurnAwaited = false
    private var isFeeding = false
    private var isReadWanted = false
    private var isInputClosed = false

    func handlerAdded(context: ChannelHandlerContext) {
        self.context = context
        // One read fills at most one buffer (64 KiB).
        try? context.channel.syncOptions?.setOption(.maxMessagesPerRead, value: 1)
    }

    func handlerRemoved(context: ChannelHandlerContext) { self.context = nil }

    /// Passes input on to the parser.
    func open() {
        guard state == .closed, let context else { return }
        state = .open
        // In a later task, because the caller is a handler in the middle of its work.
        let box = NIOLoopBound((gate: self, context: context), eventLoop: context.eventLoop)
        context.eventLoop.execute { box.value.gate.resume(box.value.context) }
    }

    /// Opens the gate for input that no request handler waits for: the next request, or a refused
    /// body. Buffered bytes wait for their turn (`InputTurns`). Unread bytes need none: the event loop
    /// polls before it reads them.
    func openInTurn() {
        guard state == .closed, let context else { return }
        guard held.readableBytes > 0 else { return open() }
        guard !isTurnAwaited else { return }
        isTurnAwaited = true
        InputTurns.current(context.eventLoop).append { [weak self] in
            guard let self else { return false }
            isTurnAwaited = false
            guard state == .closed, let context = self.context else { return false }
            state = .open
            resume(context)
            return true
        }
    }

    private func resume(_ context: ChannelHandlerContext) {
        feed(context)
        context.fireChannelReadComplete()
        guard isPassing, isReadWanted else { return }
        isReadWanted = false
        context.read()
    }

    /// Holds input back, except for the piece that the parser has already.
    func close() { if state == .open { state = .closed } }

    /// Discards all further input.
    func finish() {
        state = .done
        held = ByteBuffer()
    }

    /// Resets the byte count for a new request.
    func beginRequest() { requestBytes = 0 }

    /// Adds bytes to the count that the request costs beside those received.
    func charge(_ bytes: Int) { requestBytes += bytes }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        guard state != .done else { return }
        var part = unwrapInboundIn(data)
        if held.readableBytes == 0 { held = part } else { held.writeBuffer(&part) }
        feed(context)
        if held.readableBytes > Self.heldBytesMax {
            finish()
            context.fireErrorCaught(Overflow())
        }
    }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        // The event must follow the buffered bytes.
        if event as? ChannelEvent == .inputClosed, held.readableBytes > 0 {
            isInputClosed = true
        } else {
            context.fireUserInboundEventTriggered(event)
        }
    }

    func read(context: ChannelHandlerContext) {
        if isPassing { context.read() } else { isReadWanted = true }
    }

    private var isPassing: Bool { state == .open && held.readableBytes == 0 }

    private func feed(_ context: ChannelHandlerContext) {
        guard !isFeeding else { return }
        isFeeding = true
        defer { isFeeding = false }
        while state == .open, let piece = held.readSlice(length: nextPieceBytes()),
            piece.readableBytes > 0
        {
            requestBytes += piece.readableBytes
            context.fireChannelRead(wrapInboundOut(piece))
            guard requestBytes <= Self.requestBytesMax || state == .done else {
                finish()
                return context.fireErrorCaught(Overflow())
            }
        }
        guard isPassing else { return }
        // The last slice would keep the buffer of the whole read in memory.
        held = ByteBuffer()
        if isInputClosed {
            isInputClosed = false
            context.fireUserInboundEventTriggered(ChannelEvent.inputClosed)
        }
    }

    /// The length of the next piece: to the end of a head, at most `pieceBytes`.
    private func nextPieceBytes() -> Int {
        let count = min(Self.pieceBytes, held.readableBytes)
        let (length, matched) = held.withUnsafeReadableBytes { bytes -> (Int, Int) in
            guard let base = bytes.baseAddress else { return (0, headEndBytes) }
            var (offset, matched) = (0, headEndBytes)
            while offset < count {
                if matched == 0 {
                    // memchr skips most of a body, which has few CR bytes.
                    guard let next = memchr(base + offset, 0x0D, count - offset)
                    else { return (count, 0) }
                    offset = UnsafeRawPointer(next) - base
                }
                let byte = bytes[offset]
                matched = byte == Self.headEnd[matched] ? matched + 1 : byte == 0x0D ? 1 : 0
                offset += 1
                if matched == Self.headEnd.count { return (offset, 0) }
            }
            return (count, matched)
        }
        headEndBytes = matched
        return length
    }
}

// Bounds what is held of a connection's input: the first handler after TLS, in front of HTTP's
// parser. The parser keeps whatever it does not understand yet, or does not want to, and what it has
// parsed waits in memory for a request handler; so it is fed one head at a time, in small pieces, and
// only when ConnectionGuard has use for them. What does not get past the gate stays with the client, since
// nothing more is read meanwhile. Spec/operations/operating.md, OPS-20.

import Foundation
import NIOCore

/// Feeds the parser.
final class InputGate: ChannelDuplexHandler, RemovableChannelHandler {
    typealias InboundIn = ByteBuffer
    typealias InboundOut = ByteBuffer
    typealias OutboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    /// A request has more bytes than `requestBytesMax`.
    struct Overflow: Error {}

    private enum State {
        case open
        case closed
        /// What comes is thrown away, and no more is read.
        case done
    }

    /// The most bytes that the parser gets at once.
    private static let pieceBytes = 4 * 1024
    /// The end of a head. The parser gets no byte after one in the same piece: a piece completes one
    /// head at most, and the gate is closed before the next one.
    private static let headEnd = Array("\r\n\r\n".utf8)
    /// Bytes that wait at most. More come only if the client has ended its side of the connection
    /// while the gate is closed: then the system hands over all that it has.
    private static let heldBytesMax = 256 * 1024
    /// Bytes of a request's head and body, as they cross the network. Clients that are refused early
    /// mostly go on sending, and read the reply afterwards.
    static let requestBytesMax = 4 * 1024 * 1024

    private var context: ChannelHandlerContext?
    private var state = State.open
    private var held = ByteBuffer()
    /// Bytes of `headEnd` that the last piece has ended with.
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

    /// Lets the parser have what comes.
    func open() {
        guard state == .closed, let context else { return }
        state = .open
        // Not at once: the caller is a handler in the middle of its work.
        let box = NIOLoopBound((gate: self, context: context), eventLoop: context.eventLoop)
        context.eventLoop.execute { box.value.gate.resume(box.value.context) }
    }

    /// Opens the gate for what no request handler waits for: the next request, or a refused body.
    /// Held bytes wait for their turn (`InputTurns`). Bytes that are still with the system need none:
    /// the event loop polls before it reads them.
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

    /// Keeps from the parser what comes, but for the piece that it is working on.
    func close() { if state == .open { state = .closed } }

    /// Throws away what comes from now on.
    func finish() {
        state = .done
        held = ByteBuffer()
    }

    /// A request begins: its bytes are counted anew.
    func beginRequest() { requestBytes = 0 }

    /// Counts bytes that a request costs beside those that have come.
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
        // The end comes after what is held.
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
        // The last piece would keep the memory of the whole read.
        held = ByteBuffer()
        if isInputClosed {
            isInputClosed = false
            context.fireUserInboundEventTriggered(ChannelEvent.inputClosed)
        }
    }

    /// Bytes from the start of `held` to the end of a head, or to the end of a piece.
    private func nextPieceBytes() -> Int {
        let count = min(Self.pieceBytes, held.readableBytes)
        let (length, matched) = held.withUnsafeReadableBytes { bytes -> (Int, Int) in
            guard let base = bytes.baseAddress else { return (0, headEndBytes) }
            var (offset, matched) = (0, headEndBytes)
            while offset < count {
                if matched == 0 {
                    // In one step: a body has few of these bytes.
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

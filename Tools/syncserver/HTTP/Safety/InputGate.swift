// Bounds what is held of a connection's input: the first handler after TLS, in front of HTTP's
// parser. The parser keeps whatever it does not understand yet, or does not want to, and what it has
// parsed waits in memory for a request handler; so it is fed in small pieces, and only when
// ConnectionGuard has use for them. What does not get past the gate stays with the client, since
// nothing more is read meanwhile. Spec/operating.md, OPS-20.

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

    /// Bytes that the parser gets at once: at most so many are parsed after the gate has closed.
    private static let pieceBytes = 4 * 1024
    /// Bytes that wait at most. More come only if the client has ended its side of the connection
    /// while the gate is closed: then the system hands over all that it has.
    private static let heldBytesMax = 256 * 1024
    /// Bytes of a request's head and body, as they cross the network. Clients that are refused early
    /// mostly go on sending, and read the reply afterwards.
    static let requestBytesMax = 4 * 1024 * 1024

    private var context: ChannelHandlerContext?
    private var state = State.open
    private var held = ByteBuffer()
    private var requestBytes = 0
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
        context.eventLoop.execute {
            let (gate, context) = box.value
            gate.feed(context)
            context.fireChannelReadComplete()
            guard gate.isPassing, gate.isReadWanted else { return }
            gate.isReadWanted = false
            context.read()
        }
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
        while state == .open,
            let piece = held.readSlice(
                length: min(Self.pieceBytes, held.readableBytes)), piece.readableBytes > 0
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
}

// Takes the answers for one image, one request after the other, and writes what belongs to the image
// after what is there. Between BoundedHTTPClient and PartialFile. Spec/model/downloads.md, DL-13, DL-16.

import Daybook
import Foundation
import Synchronization

/// Where the bytes of an image go.
final class ImageWriter: ResponseBodyHandler {
    private struct State {
        var part: PartialFile
        var question: RangeAnswer.Question
        var answer: RangeAnswer?
        var failure: DownloadError?
        /// As far as the image was ever fetched: only what lies behind is progress.
        var highest = 0
    }

    private let state: Mutex<State>
    private let image: CityManifest.Image
    private let meter: DownloadMeter
    private let pace: DownloadPace

    init(
        _ part: PartialFile, _ image: CityManifest.Image, bytesMax: Int, _ meter: DownloadMeter,
        _ pace: DownloadPace
    ) {
        self.image = image
        self.meter = meter
        self.pace = pace
        let question = RangeAnswer.Question(
            url: image.url, sidecar: part.sidecar, size: image.size,
            bytesMax: min(image.size ?? bytesMax, bytesMax))
        state = Mutex(State(part: part, question: question, highest: part.size))
        _ = meter.set(image.url, bytes: part.size, of: image.size ?? part.sidecar.total)
    }

    /// Does something with the file.
    func withPart<Result, Failure: Error>(
        _ body: (inout PartialFile) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        try state.withLock { state throws(Failure) in try body(&state.part) }
    }

    /// Whether all that was promised is there; nil where nobody has said how much that is.
    var isWhole: Bool? {
        state.withLock { state in
            guard let total = image.size ?? state.part.sidecar.total else { return nil }
            return state.part.size == total
        }
    }

    /// Whether an answer with the whole that has ended was all that the server has, and less than
    /// the manifest says.
    var isShort: Bool {
        state.withLock { state in
            guard let size = image.size, state.part.size < size else { return false }
            return state.part.sidecar.total ?? state.part.size == state.part.size
        }
    }

    /// Prepares for the answer to a new request.
    ///
    /// - Returns: the byte to begin with, and the validator to send along; nil for the whole.
    func ask(at url: URL) -> (offset: Int, validator: String?)? {
        state.withLock { state in
            state.answer = nil
            state.failure = nil
            state.question.url = url
            state.question.sidecar = state.part.sidecar
            state.question.offset = state.part.canResume ? state.part.size : nil
            return state.question.offset.map { ($0, state.part.sidecar.validator) }
        }
    }

    /// What the last answer meant; nil if there was none.
    ///
    /// - Throws: `DownloadError` where it could not be taken.
    func outcome() throws(DownloadError) -> RangeAnswer? {
        try state.withLock { state throws(DownloadError) in
            if let failure = state.failure { throw failure }
            return state.answer
        }
    }

    /// Forgets what is there: it was wrong.
    func discard() throws(DownloadError) {
        try withPart { (part) throws(DownloadError) in try part.discard() }
        _ = meter.set(image.url, bytes: 0, of: image.size)
    }

    func begin(_ head: BoundedHTTPResponseHead) -> Bool {
        state.withLock { state in
            let answer = RangeAnswer(head, to: state.question)
            state.answer = answer
            switch answer {
            case .append:
                state.part.learn(total: ContentRange(head["Content-Range"])?.total)
                return true
            case .restart:
                do throws(DownloadError) { try state.part.restart(head) } catch {
                    state.failure = error
                    return false
                }
                return meterTakes(&state)
            default: return false
            }
        }
    }

    func receive(_ bytes: [UInt8]) -> Bool {
        state.withLock { state in
            guard state.failure == nil else { return false }
            guard state.part.size + bytes.count <= state.question.bytesMax else {
                state.answer = .wrong("an image has more bytes than announced or allowed")
                return false
            }
            do throws(DownloadError) { try state.part.append(bytes) } catch {
                state.failure = error
                return false
            }
            if state.part.size - state.highest >= DownloadPace.progressBytes {
                state.highest = state.part.size
                pace.progressed()
            }
            return meterTakes(&state)
        }
    }

    private func meterTakes(_ state: inout State) -> Bool {
        let total = image.size ?? state.part.sidecar.total
        guard meter.set(image.url, bytes: state.part.size, of: total) else {
            state.failure = DownloadError(
                .tooLarge, "the city has more bytes than a city may have")
            return false
        }
        return true
    }
}

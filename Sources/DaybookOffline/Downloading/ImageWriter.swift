// Receives the responses for one image, one request after the other, and appends their bytes to the
// partial file. Between BoundedHTTPClient and PartialFile. Spec/model/downloads.md, DL-13, DL-16.

import Daybook
import Foundation
import Synchronization

/// Writes the bytes of an image.
final class ImageWriter: ResponseBodyHandler {
    private struct State {
        var part: PartialFile
        var question: RangeAnswer.Question
        var answer: RangeAnswer?
        var failure: DownloadError?
        /// The greatest size so far. Only bytes after it count as progress.
        var sizeMax = 0
        /// The size of the last complete body without an announced end.
        var unconfirmedSize: Int?
    }

    private let state: Mutex<State>
    private let image: CityManifest.Image
    private let meter: DownloadMeter
    private let backoff: DownloadBackoff

    init(
        _ part: PartialFile, _ image: CityManifest.Image, name: String, bytesMax: Int,
        allowsLocal: Bool, _ meter: DownloadMeter, _ backoff: DownloadBackoff
    ) {
        self.image = image
        self.meter = meter
        self.backoff = backoff
        let question = RangeAnswer.Question(
            name: name, url: image.url, sidecar: part.sidecar, size: image.size,
            bytesMax: min(image.size ?? bytesMax, bytesMax), allowsLocal: allowsLocal)
        state = Mutex(State(part: part, question: question, sizeMax: part.size))
        _ = meter.set(image.url, bytes: part.size, of: image.size ?? part.sidecar.total)
    }

    /// Calls `body` with the partial file, under the lock.
    func withPart<Result, Failure: Error>(
        _ body: (inout PartialFile) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        try state.withLock { state throws(Failure) in try body(&state.part) }
    }

    /// True if all bytes are on the device; nil if the total is unknown.
    var isComplete: Bool? {
        state.withLock { state in
            guard let total = image.size ?? state.part.sidecar.total else { return nil }
            return state.part.size == total
        }
    }

    /// The greatest size so far whose bytes counted as progress.
    var sizeMax: Int { state.withLock { $0.sizeMax } }

    /// Whether a `200` response that has ended without a known total is complete: its head says how its end
    /// is found, or the last such response had the same size. Records the size for the next response.
    func confirmEnd(_ head: BoundedHTTPResponseHead) -> Bool {
        state.withLock { state in
            guard !head.hasEnd else { return true }
            defer { state.unconfirmedSize = state.part.size }
            return state.unconfirmedSize == state.part.size
        }
    }

    /// True if a complete `200` response was shorter than the manifest's size.
    var isShort: Bool {
        state.withLock { state in
            guard let size = image.size, state.part.size < size else { return false }
            return state.part.sidecar.total ?? state.part.size == state.part.size
        }
    }

    /// Prepares for the response to a new request.
    ///
    /// - Returns: the offset of the range to request, and its validator; nil for a request without range.
    func prepareRequest(to url: URL) -> (offset: Int, validator: String?)? {
        state.withLock { state in
            state.answer = nil
            state.failure = nil
            state.question.url = url
            state.question.sidecar = state.part.sidecar
            state.question.offset = state.part.canResume ? state.part.size : nil
            return state.question.offset.map { ($0, state.part.sidecar.validator) }
        }
    }

    /// Returns the classification of the last response; nil if there was none.
    ///
    /// - Throws: `DownloadError` if its bytes could not be stored.
    func outcome() throws(DownloadError) -> RangeAnswer? {
        try state.withLock { state throws(DownloadError) in
            if let failure = state.failure { throw failure }
            return state.answer
        }
    }

    /// Deletes the bytes so far, whose content is wrong.
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
                state.part.setTotalIfUnknown(ContentRange(head["Content-Range"])?.total)
                return true
            case .restart:
                do throws(DownloadError) { try state.part.restart(head) } catch {
                    state.failure = error
                    return false
                }
                return updateMeter(&state)
            default: return false
            }
        }
    }

    func receive(_ bytes: [UInt8]) -> Bool {
        state.withLock { state in
            guard state.failure == nil else { return false }
            guard state.part.size + bytes.count <= state.question.bytesMax else {
                state.answer = .wrong(
                    "\(state.question.name) has more bytes than announced or allowed")
                return false
            }
            do throws(DownloadError) { try state.part.append(bytes) } catch {
                state.failure = error
                return false
            }
            if state.part.size - state.sizeMax >= DownloadBackoff.progressBytes {
                state.sizeMax = state.part.size
                backoff.recordProgress()
            }
            return updateMeter(&state)
        }
    }

    /// - Returns: false, with `failure` set, if the city's images exceed their limit.
    private func updateMeter(_ state: inout State) -> Bool {
        let total = image.size ?? state.part.sidecar.total
        guard meter.set(image.url, bytes: state.part.size, of: total) else {
            state.failure = DownloadError(
                .tooLarge, "the city's images have more bytes than the limit")
            return false
        }
        return true
    }
}

// The body of an answer in memory, up to a limit: for manifests and whatever else is small. Given to
// BoundedHTTPClient. Spec/model/downloads.md, DL-10; Spec/model/learning.md, LRN-40.

import Daybook
import Synchronization

/// Gathers a body up to its limit. Of one that is no success nothing is kept.
final class GatheredBody: ResponseBodyHandler {
    private let bytesMax: Int
    private let content = Mutex<[UInt8]?>(nil)

    init(bytesMax: Int) { self.bytesMax = bytesMax }

    /// The bytes; nil if they were too many.
    var bytes: [UInt8]? { content.withLock { $0 } }

    func begin(_ head: BoundedHTTPResponseHead) -> Bool {
        let fits = (head.contentLength ?? 0) <= bytesMax
        content.withLock { $0 = fits ? [] : nil }
        return head.status == 200 && fits
    }

    func receive(_ bytes: [UInt8]) -> Bool {
        content.withLock { content in
            content? += bytes
            guard (content?.count ?? .max) <= bytesMax else {
                content = nil
                return false
            }
            return true
        }
    }
}

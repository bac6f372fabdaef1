// Collects the body of a small response in memory, up to a limit: a manifest, a lesson, a file. Passed to
// BoundedHTTPClient. Spec/model/downloads.md, DL-10; Spec/model/learning.md, LRN-40.

import Daybook
import Synchronization

/// Collects the body of a 200 response up to a limit. The body of any other response is not read.
final class GatheredBody: ResponseBodyHandler {
    private let bytesMax: Int
    private let content = Mutex<[UInt8]?>(nil)

    init(bytesMax: Int) { self.bytesMax = bytesMax }

    /// The bytes; nil if the body exceeded the limit.
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

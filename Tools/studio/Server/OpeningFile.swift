// The file with which `logtool studio --open` starts a browser. Spec/operations/studio.md, STU-13.

import Foundation
import LogStorage

/// A page in a folder of its own, both of their owner only, that leads to an address.
struct OpeningFile: Sendable {
    /// The path of the file.
    let path: String
    private let folder: String

    /// Writes the file.
    ///
    /// - Parameter address: the address; it has no character that HTML would change.
    /// - Throws: `StudioError`.
    init(leadingTo address: String) throws(StudioError) {
        var template = Array(
            FileManager.default.temporaryDirectory.appending(path: "daybook-studio-XXXXXX").path
                .utf8CString)
        // The folder's mode is 0700.
        guard mkdtemp(&template) != nil else {
            throw StudioError(
                description: "cannot create a temporary folder: \(String(cString: strerror(errno)))"
            )
        }
        folder = String(
            decoding: template.dropLast().map { UInt8(truncatingIfNeeded: $0) }, as: UTF8.self)
        path = folder + "/studio.html"
        let page = """
            <!DOCTYPE html>
            <meta charset="utf-8">
            <meta name="referrer" content="no-referrer">
            <meta http-equiv="refresh" content="0; url=\(address)">
            <title>Daybook Studio</title>
            <p><a href="\(address)">Daybook Studio</a>

            """
        do {
            try POSIXFileSystem().open(path, .createNew).write(Array(page.utf8), at: 0)
        } catch {
            remove()
            throw StudioError(description: "cannot write \(path): \(error)")
        }
    }

    /// Removes the file and its folder.
    func remove() {
        unlink(path)
        rmdir(folder)
    }
}

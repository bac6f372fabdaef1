// The path of a URL that an app passes. `URL.path` alone accepts any URL: https://host/log would open /log
// on this device.

import Foundation

extension URL {
    /// The path on this device.
    ///
    /// - Throws: `EventError` (`refused`) for anything but a file URL without a host.
    public func localPath() throws(EventError) -> String {
        let path = self.path
        let host = host(percentEncoded: false) ?? ""
        // The system ends a path at a zero byte, so it would name another file.
        guard isFileURL, host.isEmpty || host == "localhost", !path.isEmpty,
            !path.utf8.contains(0), !absoluteString.contains("%00")
        else {
            throw EventError(
                .refused,
                "\(absoluteString) is not the URL of a file or folder on this device; make one with "
                    + "URL(filePath:)")
        }
        return path
    }
}

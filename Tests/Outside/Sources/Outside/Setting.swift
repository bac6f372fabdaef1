// What the outside code is given by the app around it.

import DaybookOffline
import Foundation

/// A folder, a server and the like.
package struct Setting {
    /// Where the log is.
    package var url: URL
    /// Where the server listens.
    package var endpoint: URL
    /// The user's token.
    package var credentials: any Credentials
    /// When a sync ends at the latest.
    package var deadline: Date

    package init(url: URL, endpoint: URL, credentials: any Credentials, deadline: Date) {
        self.url = url
        self.endpoint = endpoint
        self.credentials = credentials
        self.deadline = deadline
    }
}

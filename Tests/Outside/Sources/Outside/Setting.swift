// The values that the code of the articles gets from the app.

import DaybookOffline
import Foundation

/// A folder, a server, credentials and a deadline.
package struct Setting {
    /// The log's folder.
    package var url: URL
    /// The server's endpoint.
    package var endpoint: URL
    /// The user's token.
    package var credentials: any Credentials
    /// The latest end of a sync.
    package var deadline: Date

    package init(url: URL, endpoint: URL, credentials: any Credentials, deadline: Date) {
        self.url = url
        self.endpoint = endpoint
        self.credentials = credentials
        self.deadline = deadline
    }
}

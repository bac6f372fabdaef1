// What is known of a request beside its text. Made by Hummingbird, filled by Authentication.

import Hummingbird
import NIOCore

/// The context of a request.
struct ServerContext: RequestContext {
    var coreContext: CoreRequestContextStorage
    /// The account on whose behalf the request is made.
    var account = "local"
    /// What the log will say about the request.
    let record = RequestRecord()
    /// The connection that it came by.
    let channel: any Channel

    init(source: ApplicationRequestContextSource) {
        coreContext = CoreRequestContextStorage(source: source)
        channel = source.channel
    }
}

// The context of a request beside its text. Hummingbird creates it, Authentication sets the account.

import Hummingbird
import NIOCore

/// The context of a request.
struct ServerContext: RequestContext {
    var coreContext: CoreRequestContextStorage
    /// The account whose events the request reads or writes.
    var account = "local"
    /// Checks that the request's token was not withdrawn meanwhile. Does nothing on a server without tokens.
    var checkPermission: @Sendable () throws(RequestError) -> Void = {}
    /// The facts for the log.
    let record = RequestRecord()
    /// The connection of the request.
    let channel: any Channel

    init(source: ApplicationRequestContextSource) {
        coreContext = CoreRequestContextStorage(source: source)
        channel = source.channel
    }
}

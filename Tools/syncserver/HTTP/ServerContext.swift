// What is known of a request beside its text. Made by Hummingbird, filled by Authentication.

import Hummingbird

/// The context of a request.
struct ServerContext: RequestContext {
    var coreContext: CoreRequestContextStorage
    /// The account on whose behalf the request is made.
    var account = "local"

    init(source: ApplicationRequestContextSource) {
        coreContext = CoreRequestContextStorage(source: source)
    }
}

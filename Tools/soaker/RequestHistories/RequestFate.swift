// What happens to a request on its way to an API in memory. Before the APIs.

import Replay

package enum RequestFate {
    case answered
    /// Nothing reaches the API.
    case lostRequest
    /// The API applies it, and no answer arrives.
    case lostAnswer
    /// No answer arrives, and the API gets the request after later ones.
    case late
    /// The API applies it, and the app is killed before the answer arrives.
    case killed
    /// The app was killed: what its tasks still do does not happen.
    case dead
    /// Something on the way, or the API in trouble, answers.
    case instead(APIAnswer)
    /// The API answers with a list as it was some changes ago.
    case lateList(Int)
    /// The client fails.
    case failed(any Error)
}

extension APIAnswer {
    package static func json(_ status: Int, _ body: String) -> APIAnswer {
        APIAnswer(
            status: status, headers: ["Content-Type": "application/json"], body: Array(body.utf8))
    }

    package static func page(_ status: Int) -> APIAnswer {
        APIAnswer(
            status: status, headers: ["Content-Type": "text/html"],
            body: Array("<html>Welcome</html>".utf8))
    }
}

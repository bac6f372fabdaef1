// One request with libcurl, from its options to its result. Created and used on the request's own thread.
// Spec/operations/secrets.md, SEC-22 to SEC-25.

#if os(Linux)
    import CCurl
    import Foundation

    /// One request and the received part of its reply.
    final class CurlExchange {
        /// The largest size in bytes of a reply's head, its interim heads and its trailer together.
        static let headBytesMax = 64 * 1024

        private let request: BoundedHTTPRequest
        private let origin: HTTPOrigin
        private let handler: any ResponseBodyHandler
        private let timeouts: BoundedHTTPClient.Timeouts
        private let route: BoundedHTTPClient.Route
        private let cancellation: Cancellation
        /// The latest end of the request, its repetition included.
        private let deadline: ContinuousClock.Instant?

        /// The received part of the head.
        private var partialHead = BoundedHTTPResponseHead(status: 0)
        /// The complete head, which the handler has received.
        private var head: BoundedHTTPResponseHead?
        private var headBytes = 0
        private var bodyBytes = 0
        /// The reason why the reply is refused.
        private var refusal: TransportError?
        /// True if the handler has ended the request.
        private var hasEnded = false
        /// The transfer, for the callbacks that ask for its address.
        private var easy: UnsafeMutableRawPointer?
        /// An address of the server that was refused.
        private var refusedAddress: String?

        /// The end of the loop.
        private enum End {
            case finished(CURLcode)
            /// The multi handle failed.
            case failed(CURLMcode)
            case cancelled
            case timedOut
        }

        init(
            _ request: BoundedHTTPRequest, to origin: HTTPOrigin,
            _ handler: any ResponseBodyHandler,
            _ timeouts: BoundedHTTPClient.Timeouts, _ cancellation: Cancellation,
            _ route: BoundedHTTPClient.Route = BoundedHTTPClient.Route()
        ) {
            self.request = request
            self.origin = origin
            self.handler = handler
            self.timeouts = timeouts
            self.route = route
            self.cancellation = cancellation
            deadline = timeouts.requestSeconds.map { ContinuousClock.now + Self.duration($0) }
        }

        /// Sends the request.
        ///
        /// The server may have closed an idle connection meanwhile. If it ends without a byte of a reply, the
        /// whole request is repeated once, at once, on a new connection: the server recognises events that
        /// are sent twice by their ids. A request that may be sent once only is not repeated.
        ///
        /// - Parameter deliver: receives the result, and whether the handle can be used for another
        ///   request. Called once, before any cleanup that may take time.
        func run(
            on handle: CurlHandle,
            deliver: (_ result: Result<BoundedHTTPResponseHead, any Error>, _ isReusable: Bool) ->
                Void
        ) {
            let fields = list(of: request.fields)
            defer { curl_slist_free_all(fields) }
            // libcurl reads the body where it is, until the transfer is removed.
            (request.body ?? []).withUnsafeBufferPointer { body in
                configure(handle.easy, fields, body)
                var end = drive(handle)
                if isStale(end, handle.easy) {
                    curl_multi_remove_handle(handle.multi, handle.easy)
                    curl_set_long(handle.easy, CURLOPT_FRESH_CONNECT, 1)
                    end = drive(handle)
                }
                let isReusable = if case .finished(CURLE_OK) = end { true } else { false }
                if isReusable { curl_multi_remove_handle(handle.multi, handle.easy) }
                deliver(result(of: end), isReusable)
                // May block until a DNS lookup ends.
                if !isReusable { curl_multi_remove_handle(handle.multi, handle.easy) }
            }
        }

        // MARK: Options

        private func configure(
            _ easy: UnsafeMutableRawPointer, _ fields: UnsafeMutablePointer<curl_slist>?,
            _ body: UnsafeBufferPointer<UInt8>
        ) {
            // Resets all options but keeps connections. By default passwords, cookies, .netrc and redirects
            // are off, and certificates are checked against the system's authorities.
            curl_easy_reset(easy)
            curl_allow_http_only(easy)
            curl_set_long(easy, CURLOPT_NOSIGNAL, 1)
            curl_set_long(easy, CURLOPT_HTTP_VERSION, Int(CURL_HTTP_VERSION_1_1))
            curl_set_long(easy, CURLOPT_SSLVERSION, Int(CURL_SSLVERSION_TLSv1_2))
            curl_set_long(easy, CURLOPT_SSL_VERIFYPEER, 1)
            curl_set_long(easy, CURLOPT_SSL_VERIFYHOST, 2)
            curl_set_long(easy, CURLOPT_FOLLOWLOCATION, 0)
            curl_set_long(easy, CURLOPT_PATH_AS_IS, 1)
            // libcurl repeats a request if a reused connection ends without a reply, whatever its method.
            if request.isSentOnce { curl_set_long(easy, CURLOPT_FRESH_CONNECT, 1) }
            curl_set_long(easy, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1)
            configureRoute(easy)
            configureAddressCheck(easy)
            curl_set_string(easy, CURLOPT_URL, address)
            curl_set_pointer(easy, CURLOPT_HTTPHEADER, fields)
            if request.body == nil {
                curl_set_long(easy, CURLOPT_HTTPGET, 1)
            } else {
                curl_set_long(easy, CURLOPT_POST, 1)
                curl_set_size(easy, CURLOPT_POSTFIELDSIZE_LARGE, curl_off_t(body.count))
                if let start = body.baseAddress, !body.isEmpty {
                    curl_set_pointer(easy, CURLOPT_POSTFIELDS, start)
                } else {
                    curl_set_string(easy, CURLOPT_COPYPOSTFIELDS, "")
                }
            }
            if let method = request.method {
                curl_set_string(easy, CURLOPT_CUSTOMREQUEST, method.rawValue)
            }
            let this = Unmanaged.passUnretained(self).toOpaque()
            curl_set_pointer(easy, CURLOPT_HEADERDATA, this)
            curl_set_receiver(easy, CURLOPT_HEADERFUNCTION) { bytes, size, count, context in
                CurlExchange.pass(bytes, size * count, to: context) { $0.receiveHeadLine($1) }
            }
            curl_set_pointer(easy, CURLOPT_WRITEDATA, this)
            curl_set_receiver(easy, CURLOPT_WRITEFUNCTION) { bytes, size, count, context in
                CurlExchange.pass(bytes, size * count, to: context) { $0.receiveBody($1) }
            }
        }

        private func configureRoute(_ easy: UnsafeMutableRawPointer) {
            // A proxy is used for https only: it could read http.
            guard origin.scheme == "https" else {
                curl_set_string(easy, CURLOPT_PROXY, "")
                return
            }
            if let proxy = route.proxy, let origin = HTTPOrigin(proxy.url) {
                curl_set_string(
                    easy, CURLOPT_PROXY, "http://\(origin.hostInURL):\(origin.port)")
                // The app's proxy takes precedence over the environment's `no_proxy`.
                curl_set_string(easy, CURLOPT_NOPROXY, "")
                if let user = proxy.user { curl_set_string(easy, CURLOPT_PROXYUSERNAME, user) }
                if let password = proxy.password {
                    curl_set_string(easy, CURLOPT_PROXYPASSWORD, password)
                }
            } else if request.refusesLocalAddresses {
                // A host of the environment's `no_proxy` would be connected to directly, and its address not checked.
                curl_set_string(easy, CURLOPT_NOPROXY, "")
            }
            if let file = route.authoritiesFile { curl_set_string(easy, CURLOPT_CAINFO, file) }
            if let certificate = route.certificate {
                curl_set_string(easy, CURLOPT_SSLCERTTYPE, "P12")
                certificate.pkcs12.withUnsafeBytes {
                    _ = curl_set_certificate(easy, $0.baseAddress, $0.count)
                }
                curl_set_string(easy, CURLOPT_KEYPASSWD, certificate.password)
            }
        }

        // MARK: Addresses

        /// Whether local addresses of the server are refused. A proxy resolves the name itself.
        private var checksAddress: Bool {
            guard request.refusesLocalAddresses else { return false }
            let variables = ["https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"]
            let environment = ProcessInfo.processInfo.environment
            return origin.scheme != "https"
                || route.proxy == nil
                    && variables.allSatisfy { environment[$0]?.isEmpty ?? true }
        }

        private func configureAddressCheck(_ easy: UnsafeMutableRawPointer) {
            self.easy = easy
            guard checksAddress else { return }
            let this = Unmanaged.passUnretained(self).toOpaque()
            // Of several addresses, libcurl tries the next one.
            curl_set_opener(
                easy,
                { context, _, address in
                    guard let context, let address else { return -1 }
                    let this = Unmanaged<CurlExchange>.fromOpaque(context).takeUnretainedValue()
                    return this.allows(address) ? curl_open_socket(address) : -1
                }, this)
        }

        private func allows(_ address: UnsafeMutablePointer<curl_sockaddr>) -> Bool {
            // The structure continues after the member, which is the beginning of the address.
            let offset = MemoryLayout<curl_sockaddr>.offset(of: \.addr) ?? 0
            let bytes = (UnsafeRawPointer(address) + offset).assumingMemoryBound(to: sockaddr.self)
            var text = [CChar](repeating: 0, count: Int(NI_MAXHOST))
            guard
                getnameinfo(
                    bytes, address.pointee.addrlen, &text, socklen_t(text.count), nil, 0,
                    NI_NUMERICHOST) == 0
            else { return false }
            let name = String(
                decoding: text.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
            guard HTTPOrigin.isLocalAddress(name) == false else {
                refusedAddress = name
                return false
            }
            return true
        }

        /// Checks the address of a connection that an earlier request without the check has opened.
        private func requireAllowedConnection() -> Bool {
            guard checksAddress, let easy else { return true }
            var address: UnsafePointer<CChar>?
            curl_get_string(easy, CURLINFO_PRIMARY_IP, &address)
            guard let address = address.map({ String(cString: $0) }),
                HTTPOrigin.isLocalAddress(address) == false
            else {
                refusal = localAddress
                return false
            }
            return true
        }

        private var localAddress: TransportError {
            TransportError(
                .localAddress, location: origin.host,
                "its name leads to an address of this machine or its network")
        }

        /// The URL, composed of checked parts, so that libcurl parses no other host from it. Nil for a URL
        /// that `HTTPOrigin(endpoint:)` refuses; libcurl refuses a request without a URL.
        private var address: String? {
            guard let target = HTTPOrigin.target(of: request.url) else { return nil }
            return "\(origin.scheme)://\(origin.hostInURL):\(origin.port)\(target)"
        }

        private func list(
            of fields: [(name: String, value: String)]
        ) -> UnsafeMutablePointer<curl_slist>? {
            // An empty value removes the field that libcurl would add: with it, libcurl would wait for
            // `100 Continue` before it sends the body.
            var list = curl_slist_append(nil, "Expect:")
            for (name, value) in fields {
                list = curl_slist_append(list, value.isEmpty ? "\(name);" : "\(name): \(value)")
            }
            return list
        }

        // MARK: The loop

        /// The longest wait of the loop if a cancellation does not end it.
        private static let pollMillisecondsMax: Int64 = 1_000

        private func drive(_ handle: CurlHandle) -> End {
            var code = curl_multi_add_handle(handle.multi, handle.easy)
            let clock = ContinuousClock()
            var (lastMoved, moved) = (clock.now, curl_off_t(-1))
            var running: Int32 = 1
            let waitMax = handle.canBeWoken ? Int64(Int32.max) : Self.pollMillisecondsMax
            while running > 0 {
                // Without this check, a poll that fails at once would cause a busy loop.
                guard code == CURLM_OK else { return .failed(code) }
                guard !cancellation.isCancelled else { return .cancelled }
                code = curl_multi_perform(handle.multi, &running)
                guard code == CURLM_OK else { return .failed(code) }
                let now = clock.now
                let bytes = sentBytes(handle.easy) + curl_off_t(headBytes + bodyBytes)
                if bytes != moved { (lastMoved, moved) = (now, bytes) }
                var end = lastMoved + Self.duration(timeouts.silenceSeconds)
                if let deadline { end = min(end, deadline) }
                guard running > 0 else { break }
                guard now < end else { return .timedOut }
                let milliseconds = min(Int64((end - now) / .milliseconds(1)) + 1, waitMax)
                code = curl_multi_poll(handle.multi, nil, 0, Int32(milliseconds), nil)
            }
            var left: Int32 = 0
            guard let message = curl_multi_info_read(handle.multi, &left) else {
                return .finished(CURLE_FAILED_INIT)
            }
            return .finished(message.pointee.data.result)
        }

        private func sentBytes(_ easy: UnsafeMutableRawPointer) -> curl_off_t {
            var bytes: curl_off_t = 0
            curl_get_size(easy, CURLINFO_SIZE_UPLOAD_T, &bytes)
            return bytes
        }

        /// The app's number of seconds as a duration, from a millisecond to a million seconds.
        private static func duration(_ seconds: Double) -> Duration {
            .seconds(seconds > 0.001 ? min(seconds, 1e6) : 0.001)
        }

        /// Whether a reused connection broke before the reply began.
        private func isStale(_ end: End, _ easy: UnsafeMutableRawPointer) -> Bool {
            guard case .finished(let code) = end, headBytes == 0, !request.isSentOnce,
                [CURLE_GOT_NOTHING, CURLE_SEND_ERROR, CURLE_RECV_ERROR].contains(code)
            else { return false }
            var connections = 0
            curl_get_long(easy, CURLINFO_NUM_CONNECTS, &connections)
            return connections == 0
        }

        // MARK: The reply

        private static func pass(
            _ bytes: UnsafeMutablePointer<CChar>?, _ count: Int,
            to context: UnsafeMutableRawPointer?,
            _ receive: (CurlExchange, UnsafeRawBufferPointer) -> Bool
        ) -> Int {
            guard let bytes, let context, count > 0 else { return 0 }
            let this = Unmanaged<CurlExchange>.fromOpaque(context).takeUnretainedValue()
            // A result other than `count` makes libcurl end the transfer and its connection.
            return receive(this, UnsafeRawBufferPointer(start: bytes, count: count)) ? count : 0
        }

        private func refuse(_ detail: String) -> Bool {
            refusal = refusal ?? TransportError(.malformedReply, location: origin.host, detail)
            return false
        }

        /// Receives a line of a head, its end included.
        private func receiveHeadLine(_ bytes: UnsafeRawBufferPointer) -> Bool {
            headBytes += bytes.count
            guard headBytes <= Self.headBytesMax else {
                return refuse("the reply's head has more than \(Self.headBytesMax) bytes")
            }
            // Trailer fields count towards the limit and are ignored.
            guard head == nil else { return true }
            let line = String(decoding: bytes, as: UTF8.self)
                .trimmingCharacters(in: .whitespacesAndNewlines)
            if line.isEmpty { return partialHead.status < 200 || endHead() }
            if line.hasPrefix("HTTP/") {
                let status = line.split(separator: " ").dropFirst().first.flatMap { Int($0) }
                partialHead = BoundedHTTPResponseHead(status: status ?? 0)
            } else if let colon = line.firstIndex(of: ":") {
                partialHead.add(
                    String(line[..<colon]),
                    line[line.index(after: colon)...].trimmingCharacters(in: .whitespaces))
            }
            return true
        }

        private func endHead() -> Bool {
            // libcurl would decode a gzip transfer encoding although none was requested.
            let coding = partialHead["Transfer-Encoding"]?.lowercased() ?? "identity"
            guard ["identity", "chunked"].contains(coding) else {
                return refuse("the reply has a transfer encoding, which is not allowed")
            }
            guard requireAllowedConnection() else { return false }
            head = partialHead
            hasEnded = !handler.begin(partialHead)
            return !hasEnded
        }

        private func receiveBody(_ bytes: UnsafeRawBufferPointer) -> Bool {
            bodyBytes += bytes.count
            guard head != nil else { return refuse("the reply is not HTTP") }
            hasEnded = !handler.receive(Array(bytes))
            return !hasEnded
        }

        private func result(of end: End) -> Result<BoundedHTTPResponseHead, any Error> {
            if let refusal { return .failure(refusal) }
            if hasEnded, let head { return .success(head) }
            switch end {
            case .cancelled: return .failure(CancellationError())
            case .timedOut, .finished(CURLE_OPERATION_TIMEDOUT):
                return failure(.timedOut, "the server did not answer in time")
            case .finished(CURLE_OK):
                if let head { return .success(head) }
                return failure(.connectionFailed, "the connection ended within the reply's head")
            case .finished(CURLE_COULDNT_CONNECT) where refusedAddress != nil:
                return .failure(localAddress)
            case .finished(let code)
            where [
                CURLE_UNSUPPORTED_PROTOCOL, CURLE_WEIRD_SERVER_REPLY, CURLE_BAD_CONTENT_ENCODING,
            ].contains(code):
                return failure(.malformedReply, "the reply is not HTTP")
            case .finished(CURLE_SSL_CERTPROBLEM):
                return failure(
                    .badCertificate,
                    "the client certificate cannot be opened: it is not a PKCS #12 file, the password is "
                        + "wrong, or its encryption is too old for OpenSSL 3")
            case .finished(CURLE_OUT_OF_MEMORY):
                // libcurl returns this code for headers beyond its limit, too.
                return failure(
                    .connectionFailed, "the reply's headers are too large, or memory is full")
            case .failed(let code):
                return failure(.connectionFailed, String(cString: curl_multi_strerror(code)))
            case .finished(let code):
                // libcurl's text for the code, which contains no part of the reply.
                return failure(.connectionFailed, String(cString: curl_easy_strerror(code)))
            }
        }

        private func failure(
            _ code: TransportError.Code, _ detail: String
        ) -> Result<BoundedHTTPResponseHead, any Error> {
            .failure(TransportError(code, location: origin.host, detail))
        }
    }
#endif

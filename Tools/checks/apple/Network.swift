// The declarations of the Network framework that the libraries use.

public import Foundation

public struct NWPath: Sendable {
    public enum Status: Sendable {
        case satisfied
        case unsatisfied
    }
    public let status: Status
    public var isExpensive: Bool { fatalError() }
}

public final class NWPathMonitor: Sendable {
    public init() {}
    @preconcurrency public final var pathUpdateHandler: (@Sendable (NWPath) -> Void)? {
        get { fatalError() }
        set {}
    }
    public final func start(queue _: DispatchQueue) {}
    public final func cancel() {}
}

public enum NWEndpoint: Sendable {
    public enum Host: Sendable {
        case name(String)
        public init(_: String) { fatalError() }
    }
    public struct Port: Sendable {
        public init?(rawValue _: UInt16) {}
    }
    case hostPort(host: NWEndpoint.Host, port: NWEndpoint.Port)
}

public final class NWProtocolTLS {
    public class Options {}
}

@available(iOS 17.0, macOS 14.0, *)
public struct ProxyConfiguration {
    public init(httpCONNECTProxy _: NWEndpoint, tlsOptions _: NWProtocolTLS.Options? = nil) {}
    public func applyCredential(username _: String, password _: String) {}
}

@available(iOS 17.0, macOS 14.0, *)
extension URLSessionConfiguration {
    public var proxyConfigurations: [ProxyConfiguration] {
        get { fatalError() }
        set {}
    }
}

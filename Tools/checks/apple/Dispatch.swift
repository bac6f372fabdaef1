// The declarations of Dispatch that the libraries use.

public struct DispatchQoS: Sendable {
    public enum QoSClass: Sendable {
        case background
        case utility
        case `default`
        case userInitiated
        case userInteractive
        case unspecified
    }
}

public class DispatchObject: @unchecked Sendable {}

public class DispatchQueue: DispatchObject, @unchecked Sendable {
    public convenience init(label _: String) { fatalError() }
    public class func global(qos _: DispatchQoS.QoSClass = .default) -> DispatchQueue {
        fatalError()
    }
    public class func concurrentPerform(iterations _: Int, execute _: (Int) -> Void) {}
    public func async(execute _: @escaping @Sendable @convention(block) () -> Void) {}
}

public class DispatchGroup: DispatchObject, @unchecked Sendable {
    public override init() {}
    public func enter() {}
    public func leave() {}
    public func wait() {}
}

public class DispatchSemaphore: DispatchObject, @unchecked Sendable {
    public init(value _: Int) {}
    @discardableResult public func signal() -> Int { fatalError() }
    public func wait() {}
}

public enum DispatchPredicate {
    case onQueue(DispatchQueue)
}

public func dispatchPrecondition(condition _: @autoclosure () -> DispatchPredicate) {}

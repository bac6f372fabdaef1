// Objective-C's root class as Swift sees it.

@_exported import ObjectiveC

extension NSObject: Equatable, Hashable {
    public static func == (_: NSObject, _: NSObject) -> Bool { fatalError() }
    public func hash(into _: inout Hasher) {}
}

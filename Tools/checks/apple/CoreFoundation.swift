// What makes Core Foundation's types keys of dictionaries.

@_exported import CoreFoundation

public protocol _CFObject: AnyObject, Hashable {}

extension _CFObject {
    public static func == (_: Self, _: Self) -> Bool { fatalError() }
    public func hash(into _: inout Hasher) {}
}

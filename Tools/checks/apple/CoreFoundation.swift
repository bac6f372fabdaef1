// The Hashable conformances of Core Foundation's types, for keys of dictionaries.

@_exported import CoreFoundation

public protocol _CFObject: AnyObject, Hashable {}

extension _CFObject {
    public static func == (_: Self, _: Self) -> Bool { fatalError() }
    public func hash(into _: inout Hasher) {}
}

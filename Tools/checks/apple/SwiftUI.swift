// The declarations of SwiftUI that a screen with a query uses.

@MainActor @preconcurrency
public protocol View {
    associatedtype Body: View
    @ViewBuilder @MainActor @preconcurrency var body: Body { get }
}

extension Never: View {
    public var body: Never { fatalError() }
}

@resultBuilder
public struct ViewBuilder {
    public static func buildBlock<Content: View>(_ content: Content) -> Content { content }
}

public protocol DynamicProperty {
    mutating func update()
}

extension DynamicProperty {
    public mutating func update() {}
}

@propertyWrapper
public struct State<Value>: DynamicProperty {
    public init(wrappedValue _: Value) {}
    public init(initialValue _: Value) {}
    public var wrappedValue: Value {
        get { fatalError() }
        nonmutating set {}
    }
}

public struct LocalizedStringKey: ExpressibleByStringInterpolation {
    public init(stringLiteral _: String) {}
}

public struct Text: View {
    public init(_: LocalizedStringKey) {}
    public var body: Never { fatalError() }
}

// Names of earlier versions, for apps that still use them. Each only calls the name that replaces it.

extension TransportError {
    @available(*, deprecated, renamed: "location")
    public var place: String { location }

    @available(*, deprecated, renamed: "init(_:location:_:)")
    public init(_ code: Code, place: String, _ detail: String) {
        self.init(code, location: place, detail)
    }
}

extension SecretStoreError {
    @available(*, deprecated, renamed: "location")
    public var place: String { location }

    @available(*, deprecated, renamed: "init(_:location:_:)")
    public init(_ code: Code, place: String, _ detail: String) {
        self.init(code, location: place, detail)
    }
}

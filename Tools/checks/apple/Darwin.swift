// The part of the C library that Swift cannot import: macros, and functions of variable arguments.

@_exported import Darwin

public var errno: Int32 {
    get { fatalError() }
    set {}
}

public var stdout: UnsafeMutablePointer<FILE> { fatalError() }
public var stderr: UnsafeMutablePointer<FILE> { fatalError() }

public var S_IFMT: mode_t { fatalError() }
public var S_IFREG: mode_t { fatalError() }

public func open(_: UnsafePointer<CChar>, _: Int32) -> Int32 { fatalError() }
public func open(_: UnsafePointer<CChar>, _: Int32, _: mode_t) -> Int32 { fatalError() }

public func fcntl(_: Int32, _: Int32) -> Int32 { fatalError() }
public func fcntl(_: Int32, _: Int32, _: Int32) -> Int32 { fatalError() }
public func fcntl(_: Int32, _: Int32, _: UnsafeMutableRawPointer) -> Int32 { fatalError() }

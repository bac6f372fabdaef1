// The declarations of Foundation that the libraries use, and the bridges to the Objective-C classes.

@_exported import CoreFoundation
@_exported import Darwin
@_exported import Dispatch
@_exported import Foundation
@_exported import ObjectiveC

public typealias TimeInterval = Double

public protocol ContiguousBytes {
    func withUnsafeBytes<R>(_ body: (UnsafeRawBufferPointer) throws -> R) rethrows -> R
}

extension Array: ContiguousBytes where Element == UInt8 {}

extension UnsafeBufferPointer: ContiguousBytes where Element == UInt8 {
    public func withUnsafeBytes<R>(_: (UnsafeRawBufferPointer) throws -> R) rethrows -> R {
        fatalError()
    }
}

public protocol DataProtocol: RandomAccessCollection where Element == UInt8 {}

extension Array: DataProtocol where Element == UInt8 {}

public struct Data: DataProtocol, ContiguousBytes, Hashable, Codable, Sendable, MutableCollection,
    RangeReplaceableCollection
{
    public struct WritingOptions: OptionSet, Sendable {
        public let rawValue: UInt
        public init(rawValue: UInt) { self.rawValue = rawValue }
        public static let atomic = WritingOptions()
    }

    public init() {}
    public init<S: Sequence>(_: S) where S.Element == UInt8 {}
    public init?(base64Encoded _: String) {}
    public init(contentsOf _: URL) throws {}
    public func base64EncodedString() -> String { fatalError() }
    public func write(to _: URL, options _: WritingOptions = []) throws {}
    public func withUnsafeBytes<R>(_: (UnsafeRawBufferPointer) throws -> R) rethrows -> R {
        fatalError()
    }
    public var startIndex: Int { fatalError() }
    public var endIndex: Int { fatalError() }
    public subscript(_: Int) -> UInt8 {
        get { fatalError() }
        set {}
    }
    public mutating func replaceSubrange<C: Collection>(_: Range<Int>, with _: C)
    where C.Element == UInt8 {}
}

public struct Date: Comparable, Hashable, Codable, Sendable {
    public init() {}
    public init(timeIntervalSince1970 _: TimeInterval) {}
    public init(timeIntervalSinceReferenceDate _: TimeInterval) {}
    public init(timeIntervalSinceNow _: TimeInterval) {}
    public var timeIntervalSince1970: TimeInterval { fatalError() }
    public var timeIntervalSinceReferenceDate: TimeInterval { fatalError() }
    public func addingTimeInterval(_: TimeInterval) -> Date { fatalError() }
    public func timeIntervalSince(_: Date) -> TimeInterval { fatalError() }
    public static func < (_: Date, _: Date) -> Bool { fatalError() }
}

public struct UUID: Hashable, Codable, Sendable {
    public init() {}
    public init?(uuidString _: String) {}
    public init(uuid _: uuid_t) {}
    public var uuid: uuid_t { fatalError() }
    public var uuidString: String { fatalError() }
}

public struct URL: Hashable, Codable, Sendable {
    @available(iOS 16.0, macOS 13.0, *)
    public enum DirectoryHint: Sendable {
        case isDirectory
        case notDirectory
        case checkFileSystem
        case inferFromPath
    }

    public init?(string _: String) {}
    public init?(string _: String, relativeTo _: URL?) {}
    public init?(dataRepresentation _: Data, relativeTo _: URL?, isAbsolute _: Bool = false) {}
    @available(iOS 16.0, macOS 13.0, *)
    public init(filePath _: String, directoryHint _: DirectoryHint = .inferFromPath) {}
    public var absoluteString: String { fatalError() }
    public var absoluteURL: URL { fatalError() }
    public var scheme: String? { fatalError() }
    public var host: String? { fatalError() }
    public var port: Int? { fatalError() }
    public var user: String? { fatalError() }
    @available(iOS 16.0, macOS 13.0, *)
    public func host(percentEncoded _: Bool = true) -> String? { fatalError() }
    public var isFileURL: Bool { fatalError() }
    public var password: String? { fatalError() }
    public var path: String { fatalError() }
    public var query: String? { fatalError() }
    public var fragment: String? { fatalError() }
    public var lastPathComponent: String { fatalError() }
    public var pathExtension: String { fatalError() }
    public var standardizedFileURL: URL { fatalError() }
    public func resolvingSymlinksInPath() -> URL { fatalError() }
    public func deletingLastPathComponent() -> URL { fatalError() }
    @available(iOS 16.0, macOS 13.0, *)
    public func appending<S: StringProtocol>(
        path _: S, directoryHint _: DirectoryHint = .inferFromPath
    ) -> URL { fatalError() }
    @available(iOS 16.0, macOS 13.0, *)
    public func appending<S: StringProtocol>(
        component _: S, directoryHint _: DirectoryHint = .inferFromPath
    ) -> URL { fatalError() }
}

public struct URLQueryItem: Hashable, Sendable {
    public init(name _: String, value _: String?) {}
    public var name: String { fatalError() }
    public var value: String? { fatalError() }
}

public struct URLComponents: Hashable, Sendable {
    public init() {}
    public init?(string _: String) {}
    public init?(url _: URL, resolvingAgainstBaseURL _: Bool) {}
    public var scheme: String?
    public var host: String?
    public var port: Int?
    public var path = ""
    public var query: String?
    public var percentEncodedPath = ""
    public var percentEncodedQuery: String?
    public var queryItems: [URLQueryItem]?
    public var url: URL? { fatalError() }
}

public struct URLRequest: Hashable, Sendable {
    public init(url _: URL) {}
    public var httpMethod: String?
    public var httpBody: Data?
    public mutating func setValue(_: String?, forHTTPHeaderField _: String) {}
}

public protocol LocalizedError: Error {
    var errorDescription: String? { get }
    var failureReason: String? { get }
    var recoverySuggestion: String? { get }
    var helpAnchor: String? { get }
}

extension LocalizedError {
    public var errorDescription: String? { nil }
    public var failureReason: String? { nil }
    public var recoverySuggestion: String? { nil }
    public var helpAnchor: String? { nil }
}

extension Error {
    public var localizedDescription: String { fatalError() }
}

public struct URLError: Error, Hashable, Sendable {
    public struct Code: RawRepresentable, Hashable, Sendable {
        public let rawValue: Int
        public init(rawValue: Int) { self.rawValue = rawValue }
        public static var badServerResponse: Code { fatalError() }
        public static var cannotParseResponse: Code { fatalError() }
        public static var timedOut: Code { fatalError() }
    }

    public init(_: Code) {}
    public var code: Code { fatalError() }
    public var localizedDescription: String { fatalError() }
    public static var badServerResponse: Code { fatalError() }
}

public class NSNumber: NSObject, @unchecked Sendable {
    public var intValue: Int { fatalError() }
}

public class ProcessInfo: NSObject, @unchecked Sendable {
    public class var processInfo: ProcessInfo { fatalError() }
    public var operatingSystemVersionString: String { fatalError() }
}

public class FileManager: NSObject, @unchecked Sendable {
    public class var `default`: FileManager { fatalError() }
    public var temporaryDirectory: URL { fatalError() }
    public func fileExists(atPath _: String) -> Bool { fatalError() }
    public func attributesOfItem(atPath _: String) throws -> [FileAttributeKey: Any] {
        fatalError()
    }
    public func attributesOfFileSystem(forPath _: String) throws -> [FileAttributeKey: Any] {
        fatalError()
    }
    public func createDirectory(
        at _: URL, withIntermediateDirectories _: Bool,
        attributes _: [FileAttributeKey: Any]? = nil
    ) throws {}
    public func removeItem(at _: URL) throws {}
}

public struct FileAttributeKey: Hashable, RawRepresentable, Sendable {
    public let rawValue: String
    public init(rawValue: String) { self.rawValue = rawValue }
    public static let posixPermissions = FileAttributeKey(rawValue: "")
    public static let type = FileAttributeKey(rawValue: "")
    public static let modificationDate = FileAttributeKey(rawValue: "")
    public static let systemFreeSize = FileAttributeKey(rawValue: "")
}

public struct FileAttributeType: Hashable, RawRepresentable, Sendable {
    public let rawValue: String
    public init(rawValue: String) { self.rawValue = rawValue }
    public static let typeRegular = FileAttributeType(rawValue: "")
    public static let typeSymbolicLink = FileAttributeType(rawValue: "")
}

public protocol FormatStyle: Codable, Hashable {
    associatedtype FormatInput
    associatedtype FormatOutput
}

public protocol ParseStrategy: Codable, Hashable {
    associatedtype ParseInput
    associatedtype ParseOutput
}

extension Date {
    public struct ISO8601FormatStyle: FormatStyle, ParseStrategy, Sendable {
        public typealias FormatInput = Date
        public typealias FormatOutput = String
        public typealias ParseInput = String
        public typealias ParseOutput = Date
    }

    public init<T: ParseStrategy>(_: T.ParseInput, strategy _: T) throws
    where T.ParseOutput == Date { fatalError() }

    public func formatted<F: FormatStyle>(_: F) -> F.FormatOutput where F.FormatInput == Date {
        fatalError()
    }
}

extension FormatStyle where Self == Date.ISO8601FormatStyle {
    public static var iso8601: Self { fatalError() }
}

extension ParseStrategy where Self == Date.ISO8601FormatStyle {
    public static var iso8601: Self { fatalError() }
}

public class JSONEncoder: @unchecked Sendable {
    public struct OutputFormatting: OptionSet, Sendable {
        public let rawValue: UInt
        public init(rawValue: UInt) { self.rawValue = rawValue }
        public static let prettyPrinted = OutputFormatting()
        public static let sortedKeys = OutputFormatting()
        public static let withoutEscapingSlashes = OutputFormatting()
    }
    public enum DateEncodingStrategy: Sendable {
        case iso8601
        case custom(@Sendable (Date, any Encoder) throws -> Void)
    }
    public init() {}
    public var outputFormatting: OutputFormatting = []
    public var dateEncodingStrategy = DateEncodingStrategy.iso8601
    public func encode<T: Encodable>(_: T) throws -> Data { fatalError() }
}

public class JSONDecoder: @unchecked Sendable {
    public enum DateDecodingStrategy: Sendable {
        case iso8601
        case custom(@Sendable (any Decoder) throws -> Date)
    }
    public init() {}
    public var dateDecodingStrategy = DateDecodingStrategy.iso8601
    public func decode<T: Decodable>(_: T.Type, from _: Data) throws -> T { fatalError() }
}

public class JSONSerialization {
    public struct ReadingOptions: OptionSet, Sendable {
        public let rawValue: UInt
        public init(rawValue: UInt) { self.rawValue = rawValue }
    }
    public class func jsonObject(with _: Data, options _: ReadingOptions = []) throws -> Any {
        fatalError()
    }
}

public struct Decimal: Hashable, Codable, Sendable {
    public var isNaN: Bool { fatalError() }
}

public struct CharacterSet: Sendable {
    public static var whitespaces: CharacterSet { fatalError() }
    public static var whitespacesAndNewlines: CharacterSet { fatalError() }
    public init(charactersIn _: String) {}
}

extension StringProtocol {
    public func components<T: StringProtocol>(separatedBy _: T) -> [String] { fatalError() }
    public func trimmingCharacters(in _: CharacterSet) -> String { fatalError() }
    public func padding<T: StringProtocol>(
        toLength _: Int, withPad _: T, startingAt _: Int
    ) -> String { fatalError() }
    public func addingPercentEncoding(withAllowedCharacters _: CharacterSet) -> String? {
        fatalError()
    }
    public func replacingOccurrences<Target: StringProtocol, Replacement: StringProtocol>(
        of _: Target, with _: Replacement
    ) -> String { fatalError() }
}

extension String {
    public struct Encoding: Hashable, Sendable {
        public static let utf8 = Encoding()
    }

    public init(contentsOf _: URL, encoding _: Encoding) throws { fatalError() }
    public init(format _: String, _: any CVarArg...) { fatalError() }
}

extension String: _ObjectiveCBridgeable {
    public func _bridgeToObjectiveC() -> NSString { fatalError() }
    public static func _forceBridgeFromObjectiveC(_: NSString, result _: inout String?) {}
    public static func _conditionallyBridgeFromObjectiveC(_: NSString, result _: inout String?)
        -> Bool
    { fatalError() }
    public static func _unconditionallyBridgeFromObjectiveC(_: NSString?) -> String { fatalError() }
}

extension Array: _ObjectiveCBridgeable {
    public func _bridgeToObjectiveC() -> NSArray { fatalError() }
    public static func _forceBridgeFromObjectiveC(_: NSArray, result _: inout Array?) {}
    public static func _conditionallyBridgeFromObjectiveC(_: NSArray, result _: inout Array?)
        -> Bool
    { fatalError() }
    public static func _unconditionallyBridgeFromObjectiveC(_: NSArray?) -> Array { fatalError() }
}

extension Dictionary: _ObjectiveCBridgeable {
    public func _bridgeToObjectiveC() -> NSDictionary { fatalError() }
    public static func _forceBridgeFromObjectiveC(_: NSDictionary, result _: inout Dictionary?) {}
    public static func _conditionallyBridgeFromObjectiveC(
        _: NSDictionary, result _: inout Dictionary?
    ) -> Bool { fatalError() }
    public static func _unconditionallyBridgeFromObjectiveC(_: NSDictionary?) -> Dictionary {
        fatalError()
    }
}

extension Data: _ObjectiveCBridgeable {
    public func _bridgeToObjectiveC() -> NSData { fatalError() }
    public static func _forceBridgeFromObjectiveC(_: NSData, result _: inout Data?) {}
    public static func _conditionallyBridgeFromObjectiveC(_: NSData, result _: inout Data?) -> Bool
    { fatalError() }
    public static func _unconditionallyBridgeFromObjectiveC(_: NSData?) -> Data { fatalError() }
}

extension URL: _ObjectiveCBridgeable {
    public func _bridgeToObjectiveC() -> NSURL { fatalError() }
    public static func _forceBridgeFromObjectiveC(_: NSURL, result _: inout URL?) {}
    public static func _conditionallyBridgeFromObjectiveC(_: NSURL, result _: inout URL?) -> Bool {
        fatalError()
    }
    public static func _unconditionallyBridgeFromObjectiveC(_: NSURL?) -> URL { fatalError() }
}

extension URLRequest: _ObjectiveCBridgeable {
    public func _bridgeToObjectiveC() -> NSURLRequest { fatalError() }
    public static func _forceBridgeFromObjectiveC(_: NSURLRequest, result _: inout URLRequest?) {}
    public static func _conditionallyBridgeFromObjectiveC(
        _: NSURLRequest, result _: inout URLRequest?
    ) -> Bool { fatalError() }
    public static func _unconditionallyBridgeFromObjectiveC(_: NSURLRequest?) -> URLRequest {
        fatalError()
    }
}

// The compiler calls these two by name.
public func _convertErrorToNSError(_: any Error) -> NSError { fatalError() }
public func _convertNSErrorToError(_: NSError?) -> any Error { fatalError() }

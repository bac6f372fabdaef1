// swift-tools-version: 6.2
// One package, one direction: every target may use only those listed above it.

import PackageDescription

let strict: [SwiftSetting] = [
    .swiftLanguageMode(.v6),
    .treatAllWarnings(as: .error),
]

// One trait at a time: SwiftPM passes several to the compiler in an order that differs between processes,
// and compiles everything again whenever it does.
let tools: Set<String> = ["Tools", "ToolsWithTLS"]

// Builds only a part: a target's name stands for the target and what it needs, `core` for the library, its kit and
// their tests, for which two packages are fetched.
let part = Context.environment["DAYBOOK_PART"].flatMap { $0.isEmpty ? nil : $0 }

/// A product that only tools use. Without them, its package is not fetched.
func forTools(_ name: String, _ package: String) -> Target.Dependency {
    .product(name: name, package: package, condition: .when(traits: tools))
}

// Where liblz4 compresses blocks. With DAYBOOK_SWIFT_LZ4 the codec in Swift does it everywhere.
let libLZ4Traits = tools.union(["LibLZ4"])
let hasLibLZ4 = Context.environment["DAYBOOK_SWIFT_LZ4"] == nil
let libLZ4: [SwiftSetting] =
    hasLibLZ4
    ? [.define("LIBLZ4", .when(platforms: [.linux, .macOS], traits: libLZ4Traits))] : []

// Where rows in SQL are compiled.
let sqlTraits = tools.union(["SQL"])
func forSQL(_ name: String, _ package: String) -> Target.Dependency {
    .product(name: name, package: package, condition: .when(traits: sqlTraits))
}

// Where metrics and traces are compiled in.
let instrumentationTraits = tools.union(["Instrumentation"])
func forInstrumentation(_ name: String, _ package: String) -> Target.Dependency {
    .product(name: name, package: package, condition: .when(traits: instrumentationTraits))
}

let outside: [SwiftSetting] = [.unsafeFlags(["-package-name", "outside"])]

let package = Package(
    name: "daybook",
    platforms: [.macOS("15.0"), .iOS("18.0")],
    // The tools are no products: in this package `swift run logtool` works without, and for an app that depends on
    // it SwiftPM 6.3 would compile them, after a build of one product, without the packages that they need.
    products: [
        .library(name: "Daybook", targets: ["Daybook"]),
        .library(name: "DaybookOffline", targets: ["DaybookOffline"]),
        .library(name: "DaybookSecrets", targets: ["DaybookSecrets"]),
        .library(name: "DaybookSQL", targets: ["DaybookSQL"]),
        .library(name: "DaybookOfflineSQL", targets: ["DaybookOfflineSQL"]),
        .library(name: "DaybookTestKit", targets: ["DaybookTestKit"]),
    ],
    traits: [
        .trait(
            name: "Tools",
            description: """
                logtool, syncserver, searches and tests. Without it only the libraries build. On Linux and \
                macOS blocks are compressed by the system's liblz4.
                """),
        .trait(
            name: "ToolsWithTLS",
            description: """
                Tools, and syncserver speaks TLS itself, for which BoringSSL is built. A server behind a \
                proxy needs none.
                """),
        .trait(
            name: "LibLZ4",
            description: """
                For apps on Linux and macOS: blocks are compressed by the system's liblz4. Without it, and \
                on other systems, by the codec in Swift.
                """),
        .trait(
            name: "Instrumentation",
            description: """
                For apps: durations, failures and amounts go to swift-metrics and swift-distributed-tracing, \
                which are fetched then. Without it there are log lines only. The tools have it.
                """),
        .trait(
            name: "SQL",
            description: """
                For apps: the product DaybookSQL, rows in the app's own SQLite, on GRDB, which is fetched then.
                """),
        .default(enabledTraits: [part == "core" ? "LibLZ4" : "Tools"]),
    ],
    dependencies: [
        .package(url: "https://github.com/apple/swift-collections", from: "1.6.0"),
        .package(url: "https://github.com/apple/swift-log", from: "1.16.0"),
        .package(url: "https://github.com/apple/swift-metrics", from: "2.13.0"),
        .package(url: "https://github.com/apple/swift-distributed-tracing", from: "1.7.3"),
        .package(url: "https://github.com/apple/swift-argument-parser", from: "1.8.0"),
        .package(url: "https://github.com/groue/GRDB.swift", from: "7.10.0"),
        .package(
            url: "https://github.com/hummingbird-project/hummingbird", from: "2.28.0", traits: []),
        .package(url: "https://github.com/apple/swift-nio", from: "2.101.0"),
        .package(url: "https://github.com/apple/swift-nio-extras", from: "1.35.0"),
        .package(url: "https://github.com/swift-server/swift-service-lifecycle", from: "2.13.0"),
    ],
    targets: [
        // The library, from the bytes upwards.
        .systemLibrary(
            name: "CLZ4",
            pkgConfig: "liblz4",
            providers: [.apt(["liblz4-dev"]), .brew(["lz4"])]),
        // Reads a file's link count without its times, reads its creation time, and clones files. Linux only.
        .systemLibrary(name: "CStatx"),
        // The HTTP client where the system's own, URLSession, cannot bound what a server sends.
        .systemLibrary(
            name: "CCurl",
            pkgConfig: "libcurl",
            providers: [.apt(["libcurl4-openssl-dev"]), .brew(["curl"])]),
        // Digests and ciphers where the system has no framework for them.
        .systemLibrary(
            name: "CCrypto",
            pkgConfig: "libcrypto",
            providers: [.apt(["libssl-dev"]), .brew(["openssl"])]),
        .target(
            name: "Cryptography",
            dependencies: [.target(name: "CCrypto", condition: .when(platforms: [.linux]))],
            swiftSettings: strict),
        .target(
            name: "LogFormat",
            dependencies: hasLibLZ4
                ? [
                    .target(
                        name: "CLZ4",
                        condition: .when(platforms: [.linux, .macOS], traits: libLZ4Traits))
                ] : [],
            // Lifetimes: for the span of an array before macOS and iOS 26.
            swiftSettings: strict + libLZ4 + [.enableExperimentalFeature("Lifetimes")]),
        .target(
            name: "LogStorage",
            dependencies: [
                "LogFormat", .target(name: "CStatx", condition: .when(platforms: [.linux])),
            ],
            swiftSettings: strict),
        // The one target that knows what is measured, and the only one that imports metrics and traces.
        .target(
            name: "Telemetry",
            dependencies: [
                .product(name: "Logging", package: "swift-log"),
                forInstrumentation("CoreMetrics", "swift-metrics"),
                forInstrumentation("Tracing", "swift-distributed-tracing"),
            ],
            swiftSettings: strict + [
                .define("INSTRUMENTATION", .when(traits: instrumentationTraits))
            ]),
        .target(
            name: "EventSourcing",
            dependencies: [
                "Cryptography", "LogFormat", "LogStorage", "Telemetry",
                .product(name: "DequeModule", package: "swift-collections"),
                .product(name: "HashTreeCollections", package: "swift-collections"),
            ],
            swiftSettings: strict),
        // What a client of the sync protocol and its server share.
        .target(
            name: "SyncWire", dependencies: ["EventSourcing", "LogFormat"], swiftSettings: strict),
        .target(
            name: "Replay",
            dependencies: [
                .target(name: "CCurl", condition: .when(platforms: [.linux])),
                "Cryptography", "EventSourcing", "LogFormat", "LogStorage", "SyncWire", "Telemetry",
                .product(name: "DequeModule", package: "swift-collections"),
                .product(name: "HeapModule", package: "swift-collections"),
                .product(name: "Logging", package: "swift-log"),
            ],
            swiftSettings: strict),
        .target(
            name: "Daybook",
            dependencies: [
                "Cryptography", "EventSourcing", "LogFormat", "LogStorage", "Replay",
                .product(name: "HashTreeCollections", package: "swift-collections"),
            ],
            swiftSettings: strict),
        // The model of four apps, on top of what every app sees of the engine and no more.
        .target(
            name: "DaybookOffline",
            dependencies: [
                "Cryptography", "Daybook", "Telemetry",
                .product(name: "HashTreeCollections", package: "swift-collections"),
            ],
            packageAccess: false, swiftSettings: strict),
        .target(
            name: "DaybookTestKit",
            dependencies: ["Daybook", "EventSourcing", "LogFormat", "LogStorage", "Replay"],
            swiftSettings: strict),
        // Of its own: an app that has a keychain needs no sealed file.
        .target(
            name: "DaybookSecrets",
            dependencies: ["Cryptography", "EventSourcing", "LogStorage", "Replay"],
            swiftSettings: strict),
        // Of its own: GRDB is fetched for it.
        .target(
            name: "DaybookSQL",
            dependencies: ["Daybook", "EventSourcing", forSQL("GRDB", "GRDB.swift")],
            swiftSettings: strict),
        .target(
            name: "DaybookOfflineSQL",
            dependencies: ["DaybookOffline", "DaybookSQL", forSQL("GRDB", "GRDB.swift")],
            packageAccess: false, swiftSettings: strict),

        // The tools.
        .target(name: "StandardStreams", path: "Tools/streams", swiftSettings: strict),
        // The log in a browser. The pages are part of the executable.
        .target(name: "CStudioPages", path: "Tools/studio/Embedded"),
        .target(
            name: "Studio",
            dependencies: [
                "CStudioPages", "DaybookOffline", "EventSourcing", "LogFormat", "LogStorage",
                "StandardStreams",
            ],
            path: "Tools/studio", exclude: ["Embedded", "Pages"], swiftSettings: strict),
        .executableTarget(
            name: "logtool",
            dependencies: [
                "DaybookOffline", "EventSourcing", "LogFormat", "LogStorage", "StandardStreams",
                "Studio",
                forTools("ArgumentParser", "swift-argument-parser"),
                // SQLite itself, without GRDB.
                forTools("GRDBSQLite", "GRDB.swift"),
                .product(name: "Logging", package: "swift-log"),
            ],
            path: "Tools/logtool",
            swiftSettings: strict),
        // An app as a user of the library writes one. Tools/demo runs it.
        .executableTarget(
            name: "travelnotes", dependencies: ["DaybookOffline"],
            path: "Tools/sample/travelnotes", packageAccess: false, swiftSettings: strict),
        .target(
            name: "SyncServerBatch", dependencies: ["EventSourcing", "LogFormat", "SyncWire"],
            path: "Tools/syncserver/Batch", swiftSettings: strict),
        .target(
            name: "SyncServerStorage",
            dependencies: [
                "Cryptography", "EventSourcing", "LogFormat", "SyncServerBatch", "SyncWire",
                .product(name: "DequeModule", package: "swift-collections"),
                forTools("GRDB", "GRDB.swift"),
            ],
            path: "Tools/syncserver/Storage",
            swiftSettings: strict),
        // The division of capacities among accounts: values without sockets, so tests need none.
        .target(
            name: "SyncServerAdmission",
            dependencies: [
                "EventSourcing", .product(name: "DequeModule", package: "swift-collections"),
            ],
            path: "Tools/syncserver/Admission", swiftSettings: strict),
        .systemLibrary(
            name: "CPostgreSQL", path: "Tools/syncserver/CPostgreSQL",
            pkgConfig: "libpq", providers: [.apt(["libpq-dev"]), .brew(["libpq"])]),
        // The SQL is part of the executable. Spec/sql is a link to it.
        .target(name: "CServerSQL", path: "Tools/syncserver/EmbeddedSQL"),
        // Of its own, so that nothing but the server needs libpq.
        .target(
            name: "SyncServerPostgreSQL",
            dependencies: [
                "CPostgreSQL", "CServerSQL", "EventSourcing", "SyncServerStorage", "SyncWire",
                .product(name: "DequeModule", package: "swift-collections"),
            ],
            path: "Tools/syncserver/PostgreSQL",
            exclude: ["sql"],
            swiftSettings: strict),
        .executableTarget(
            name: "syncserver",
            dependencies: [
                "Cryptography", "EventSourcing", "LogFormat", "DaybookOffline", "StandardStreams",
                "SyncServerAdmission", "SyncServerPostgreSQL", "SyncServerStorage", "SyncWire",
                forTools("ArgumentParser", "swift-argument-parser"),
                forTools("Hummingbird", "hummingbird"),
                forTools("HummingbirdCore", "hummingbird"),
                .product(
                    name: "HummingbirdTLS", package: "hummingbird",
                    condition: .when(traits: ["ToolsWithTLS"])),
                .product(name: "Logging", package: "swift-log"),
                forTools("NIOCore", "swift-nio"),
                forTools("NIOHTTP1", "swift-nio"),
                forTools("NIOPosix", "swift-nio"),
                forTools("NIOHTTPTypes", "swift-nio-extras"),
                forTools("NIOHTTPTypesHTTP1", "swift-nio-extras"),
                forTools("ServiceLifecycle", "swift-service-lifecycle"),
                forTools("UnixSignals", "swift-service-lifecycle"),
            ],
            path: "Tools/syncserver/HTTP",
            swiftSettings: strict + [.define("TLS", .when(traits: ["ToolsWithTLS"]))]),
        // An API that an app may have. Tools/strangers/apis/run sends changes to it.
        .executableTarget(
            name: "notesserver",
            dependencies: [
                forTools("GRDB", "GRDB.swift"), forTools("Hummingbird", "hummingbird"),
            ],
            path: "Tools/strangers/apis/hummingbird", swiftSettings: strict),
        // Test code that several targets share.
        .target(
            name: "TestSupport", dependencies: ["DaybookTestKit"], path: "Tests/Support",
            swiftSettings: strict),
        .target(
            name: "EventGenerators",
            dependencies: ["EventSourcing", "DaybookOffline", "DaybookTestKit"],
            path: "Tests/Generators", swiftSettings: strict),

        // The searches for lost data.
        .target(
            name: "StoreHistories",
            dependencies: ["DaybookOffline", "DaybookTestKit", "LogStorage"],
            path: "Tools/soaker/StoreHistories",
            swiftSettings: strict),
        .target(
            name: "CompanionKills",
            dependencies: ["DaybookTestKit", "EventSourcing", "LogFormat", "LogStorage"],
            path: "Tools/soaker/CompanionKills",
            swiftSettings: strict),
        .target(
            name: "SyncHistories",
            dependencies: [
                "EventGenerators",
                "DaybookOffline", "DaybookTestKit", "EventSourcing", "Replay",
                "SyncServerStorage",
                forTools("GRDB", "GRDB.swift"),
            ],
            path: "Tools/soaker/SyncHistories",
            swiftSettings: strict),
        .target(
            name: "RequestHistories",
            dependencies: [
                "Daybook", "DaybookTestKit", "EventSourcing", "LogFormat", "LogStorage", "Replay",
            ],
            path: "Tools/soaker/RequestHistories",
            swiftSettings: strict),
        .target(
            name: "WireHistories",
            dependencies: ["EventGenerators", "DaybookOffline", "DaybookTestKit"],
            path: "Tools/soaker/WireHistories",
            swiftSettings: strict),
        .target(
            name: "DownloadHistories",
            dependencies: ["DaybookOffline", "DaybookTestKit"],
            path: "Tools/soaker/DownloadHistories",
            swiftSettings: strict),
        .target(
            name: "RowHistories",
            dependencies: [
                "Daybook", "DaybookSQL", "DaybookTestKit", "EventGenerators", "EventSourcing",
                "LogStorage",
                forTools("GRDB", "GRDB.swift"), forTools("GRDBSQLite", "GRDB.swift"),
            ],
            path: "Tools/soaker/RowHistories",
            swiftSettings: strict),
        .target(
            name: "YearOfUse",
            dependencies: ["DaybookOffline", "DaybookTestKit"],
            path: "Tools/soaker/YearOfUse",
            swiftSettings: strict),
        .target(
            name: "AssetReads",
            dependencies: [
                "DaybookOffline", "DaybookTestKit", forTools("GRDB", "GRDB.swift"),
            ],
            path: "Tools/soaker/AssetReads",
            swiftSettings: strict),
        .executableTarget(
            name: "soaker",
            dependencies: [
                "AssetReads", "CompanionKills", "DaybookTestKit", "DownloadHistories",
                "RequestHistories", "RowHistories",
                "StandardStreams", "StoreHistories", "SyncHistories", "WireHistories", "YearOfUse",
                forTools("ArgumentParser", "swift-argument-parser"),
            ],
            path: "Tools/soaker/Command",
            swiftSettings: strict),
        .executableTarget(
            name: "benchmarker",
            dependencies: [
                "Daybook", "DaybookOffline", "DaybookOfflineSQL", "DaybookTestKit", "LogFormat",
                "LogStorage", "StandardStreams", "WireHistories",
                forTools("ArgumentParser", "swift-argument-parser"),
                forTools("GRDB", "GRDB.swift"),
            ],
            path: "Tools/benchmarks/benchmarker",
            swiftSettings: strict),
        // What Tools/instructions counts the instructions of. Only the part `hotpaths` has it.
        .executableTarget(
            name: "hotpaths",
            dependencies: [
                "DaybookOffline", "DaybookTestKit", "EventSourcing", "LogStorage", "Replay",
                "WireHistories",
            ],
            path: "Tools/benchmarks/hotpaths", swiftSettings: strict),
        .target(
            name: "FuzzTargets",
            dependencies: [
                "EventSourcing", "LogFormat", "LogStorage", "DaybookOffline", "Replay",
                "SyncServerBatch", "SyncWire",
            ],
            path: "Tools/fuzz/Targets", swiftSettings: strict + libLZ4),

        // The tests, one target a layer.
        .testTarget(
            name: "LogFormatTests",
            dependencies: ["LogFormat", "DaybookTestKit", "TestSupport"],
            swiftSettings: strict + libLZ4),
        .testTarget(
            name: "LogStorageTests",
            dependencies: ["LogFormat", "LogStorage", "DaybookTestKit", "TestSupport"],
            swiftSettings: strict),
        .testTarget(
            name: "DaybookTestKitTests",
            dependencies: [
                "Daybook", "DaybookTestKit", "EventSourcing", "LogStorage", "Replay", "TestSupport",
            ],
            swiftSettings: strict),
        .testTarget(
            name: "EventSourcingTests",
            dependencies: [
                "EventGenerators",
                "EventSourcing", "LogFormat", "LogStorage", "DaybookOffline", "DaybookTestKit",
                "TestSupport",
                .product(name: "HashTreeCollections", package: "swift-collections"),
            ],
            swiftSettings: strict),
        .testTarget(
            name: "OfflineModelTests",
            dependencies: [
                "EventGenerators",
                "Cryptography", "DaybookOffline", "DaybookTestKit", "EventSourcing", "LogFormat",
                "LogStorage", "TestSupport",
            ],
            exclude: ["Corpus"],
            swiftSettings: strict),
        .testTarget(
            name: "ReplayTests",
            dependencies: [
                "EventGenerators",
                "DaybookTestKit", "EventSourcing", "LogFormat", "LogStorage", "DaybookOffline",
                "Replay", "RequestHistories",
                "TestSupport", .product(name: "Logging", package: "swift-log"),
            ],
            swiftSettings: strict),
        .testTarget(
            name: "DownloadsTests",
            dependencies: [
                "DaybookOffline", "DaybookTestKit", "DownloadHistories",
                "Replay", "TestSupport", "soaker",
            ],
            swiftSettings: strict),
        .testTarget(
            name: "TelemetryTests",
            dependencies: [
                "Daybook", "DaybookOffline", "DaybookTestKit", "Telemetry", "TestSupport",
                .product(name: "InMemoryLogging", package: "swift-log"),
                .product(name: "Logging", package: "swift-log"),
                forTools("CoreMetrics", "swift-metrics"),
                forTools("InMemoryTracing", "swift-distributed-tracing"),
                forTools("MetricsTestKit", "swift-metrics"),
                forTools("Tracing", "swift-distributed-tracing"),
            ],
            swiftSettings: strict),
        .testTarget(
            name: "DaybookTests",
            dependencies: [
                "Daybook", "EventGenerators",
                "DaybookOffline", "DaybookTestKit", "LogFormat", "LogStorage", "StoreHistories",
                "TestSupport",
                .product(name: "InMemoryLogging", package: "swift-log"),
                .product(name: "Logging", package: "swift-log"),
            ],
            swiftSettings: strict),
        .testTarget(
            name: "DaybookSecretsTests",
            dependencies: [
                "Cryptography", "DaybookOffline", "DaybookSecrets", "DaybookTestKit", "LogStorage",
                "Replay", "TestSupport",
            ],
            swiftSettings: strict),
        .testTarget(
            name: "DaybookSQLTests",
            dependencies: [
                "Daybook", "DaybookOffline", "DaybookOfflineSQL", "DaybookSQL", "DaybookTestKit",
                "EventGenerators", "EventSourcing", "LogFormat", "RowHistories",
                "TestSupport",
                forTools("GRDB", "GRDB.swift"),
            ],
            swiftSettings: strict),
        .testTarget(
            name: "StudioTests",
            dependencies: [
                "EventGenerators",
                "DaybookOffline", "DaybookTestKit", "EventSourcing", "LogFormat", "LogStorage",
                "Studio", "TestSupport", "logtool",
            ],
            swiftSettings: strict),
        .testTarget(
            name: "SyncServerTests",
            dependencies: [
                "Daybook", "DaybookTestKit", "Engine", "EventSourcing", "DaybookOffline",
                "SyncServerAdmission", "SyncServerPostgreSQL", "SyncServerStorage", "TestSupport",
                "syncserver",
                forTools("GRDB", "GRDB.swift"),
                forTools("Hummingbird", "hummingbird"),
                forTools("NIOCore", "swift-nio"),
                forTools("NIOPosix", "swift-nio"),
            ],
            exclude: ["Inputs"],
            swiftSettings: strict),
        .testTarget(
            name: "SyncHistoryTests",
            dependencies: [
                "DaybookOffline", "DaybookTestKit", "RequestHistories", "SyncHistories",
                "SyncServerStorage", "TestSupport",
            ],
            swiftSettings: strict),
        .testTarget(
            name: "ToolTests",
            dependencies: [
                "DaybookOffline", "DaybookTestKit", "EventGenerators", "EventSourcing", "LogFormat",
                "LogStorage", "TestSupport",
                "WireHistories", "logtool", "syncserver",
                forTools("GRDBSQLite", "GRDB.swift"),
            ],
            exclude: ["Golden"],
            swiftSettings: strict),
        .testTarget(
            name: "FuzzTests",
            dependencies: ["FuzzTargets"],
            exclude: ["Inputs"],
            swiftSettings: strict),

        // The package Tests/Outside once more, on the objects of this one: under its own package name it sees
        // what an app sees. As a package of its own Tools/nightly builds it.
        .target(
            name: "Engine", dependencies: ["Daybook"], path: "Tests/Outside/Sources/Engine",
            packageAccess: false, swiftSettings: strict + outside),
        .target(
            name: "Outside", dependencies: ["DaybookOffline"],
            path: "Tests/Outside/Sources/Outside", packageAccess: false,
            swiftSettings: strict + outside),
        .target(
            name: "Water", dependencies: ["Daybook"], path: "Tests/Outside/Sources/Water",
            packageAccess: false, swiftSettings: strict + outside),
        .executableTarget(
            name: "WaterApp", dependencies: ["Daybook", "Water"],
            path: "Tests/Outside/Sources/WaterApp", packageAccess: false,
            swiftSettings: strict + outside),
        .executableTarget(
            name: "WaterWidget", dependencies: ["Daybook", "Water"],
            path: "Tests/Outside/Sources/WaterWidget", packageAccess: false,
            swiftSettings: strict + outside),
        .testTarget(
            name: "OutsideTests",
            dependencies: [
                "Daybook", "DaybookOffline", "DaybookTestKit", "Engine", "Outside", "WaterApp",
                "WaterWidget",
            ],
            path: "Tests/Outside/Tests/OutsideTests", packageAccess: false,
            swiftSettings: strict + outside),
    ]
)

switch part {
case "core":
    package.keep([
        "DaybookSecretsTests", "DaybookTestKitTests", "DaybookTests", "EventSourcingTests",
        "LogFormatTests", "LogStorageTests", "OfflineModelTests", "OutsideTests", "ReplayTests",
    ])
case let target?:
    precondition(
        package.targets.contains { $0.name == target }, "DAYBOOK_PART: no target \(target)")
    package.keep([target])
case nil:
    package.targets.removeAll { $0.name == "hotpaths" }
}

// A build from a clone compiles faster so; Tools/checks/whole sets this. `tests` also optimises the targets whose
// unspecialised generics are half of the processor time of the tests. Assertions stay on.
if let build = Context.environment["DAYBOOK_BUILD"] {
    for target in package.targets where ![.system, .plugin, .macro].contains(target.type) {
        // A compiler that expands many macros slows down with their square, so a test target, which has thousands,
        // is compiled by several.
        var flags =
            target.type == .test
            ? ["-driver-batch-size-limit", "6"]
            : ["-whole-module-optimization", "-num-threads", "2", "-disable-batch-mode"]
        if build == "tests", ["LogFormat", "LogStorage", "EventSourcing"].contains(target.name) {
            flags += ["-O", "-assert-config", "Debug"]
        }
        target.swiftSettings =
            (target.swiftSettings ?? []) + [.unsafeFlags(flags, .when(configuration: .debug))]
    }
}

// SwiftPM compiles a target again only after a change of what the target declares (swift-package-manager #10502). With
// the former layout of a type from further below, a test crashes. Tools/checks/structure wants the declared ones alone.
if Context.environment["DAYBOOK_DECLARED"] == nil { package.declareIndirectDependencies() }

extension Package {
    /// Adds to each target the targets that it needs indirectly.
    func declareIndirectDependencies() {
        var needed: [String: Set<String>] = [:]
        // A target is listed after those that it needs.
        for target in targets {
            let direct = target.dependencies.compactMap { dependency in
                if case .byNameItem(let name, nil) = dependency { name } else { nil }
            }
            let indirect = direct.reduce(into: Set()) { $0.formUnion(needed[$1] ?? []) }
                .subtracting(direct)
            needed[target.name] = indirect.union(direct)
            target.dependencies += indirect.sorted().map { .byName(name: $0) }
        }
    }

    /// Removes all targets that none of these needs, and their packages, which SwiftPM 6.3 also fetches if no target
    /// names them.
    func keep(_ wanted: [String]) {
        var names = Set(wanted)
        var packages: Set<String> = []
        // A target is listed after those that it needs.
        for target in targets.reversed() where names.contains(target.name) {
            for dependency in target.dependencies {
                switch dependency {
                case .byNameItem(let name, _), .targetItem(let name, _): names.insert(name)
                case .productItem(_, let package, _, _): packages.insert(package ?? "")
                @unknown default: break
                }
            }
        }
        targets.removeAll { !names.contains($0.name) }
        products.removeAll { !names.contains($0.name) }
        dependencies.removeAll {
            guard case .sourceControl(_, let location, _) = $0.kind else { return false }
            return !packages.contains { location.hasSuffix("/" + $0) }
        }
    }
}

// The fuzzer itself needs a build in which everything is instrumented: Tools/fuzz/run sets this.
if Context.environment["DAYBOOK_FUZZ"] != nil {
    package.targets += [
        .systemLibrary(name: "CLibFuzzer", path: "Tools/fuzz/CLibFuzzer"),
        .executableTarget(
            name: "fuzzer", dependencies: ["CLibFuzzer", "FuzzTargets"],
            path: "Tools/fuzz/Fuzzer", swiftSettings: strict,
            // GNU gold cannot link libFuzzer here.
            linkerSettings: [.unsafeFlags(["-use-ld=lld"], .when(platforms: [.linux]))]),
    ]
}

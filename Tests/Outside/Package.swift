// swift-tools-version: 6.2
// A package that uses Daybook as an app does, through its public interface.
// Tools/nightly builds it and runs its tests; Tools/test compiles and runs the same files as targets of daybook. The
// articles of the documentation show its code.

import PackageDescription

let strict: [SwiftSetting] = [.swiftLanguageMode(.v6), .treatAllWarnings(as: .error)]

let package = Package(
    name: "outside",
    platforms: [.macOS("15.0"), .iOS("18.0")],
    // No traits: blocks are compressed by the Swift codec, and the packages of the tools are not fetched.
    dependencies: [.package(name: "daybook", path: "../..", traits: [])],
    targets: [
        // An app with only its own event types.
        .target(
            name: "Engine",
            dependencies: [.product(name: "Daybook", package: "daybook")],
            swiftSettings: strict),
        .target(
            name: "Outside",
            dependencies: [.product(name: "DaybookOffline", package: "daybook")],
            swiftSettings: strict),
        // An app and its widget.
        .target(
            name: "Water", dependencies: [.product(name: "Daybook", package: "daybook")],
            swiftSettings: strict),
        .executableTarget(
            name: "WaterApp",
            dependencies: ["Water", .product(name: "Daybook", package: "daybook")],
            swiftSettings: strict),
        .executableTarget(
            name: "WaterWidget",
            dependencies: ["Water", .product(name: "Daybook", package: "daybook")],
            swiftSettings: strict),
        .testTarget(
            name: "OutsideTests",
            dependencies: [
                "Engine", "Outside", "WaterApp", "WaterWidget",
                .product(name: "DaybookTestKit", package: "daybook"),
            ],
            swiftSettings: strict),
    ]
)

// swift-tools-version: 6.2
// A package as an app would be: of Daybook it sees only what is public. Tools/check builds it and
// runs its tests; the articles of the documentation show its code.

import PackageDescription

let strict: [SwiftSetting] = [.swiftLanguageMode(.v6), .treatAllWarnings(as: .error)]

let package = Package(
    name: "outside",
    platforms: [.macOS("15.0"), .iOS("18.0")],
    // No traits: blocks are compressed in Swift, and no package of the tools is fetched.
    dependencies: [.package(name: "daybook", path: "../..", traits: [])],
    targets: [
        // An app whose events are all its own.
        .target(
            name: "Engine",
            dependencies: [.product(name: "Daybook", package: "daybook")],
            swiftSettings: strict),
        .target(
            name: "Outside",
            dependencies: [.product(name: "DaybookOffline", package: "daybook")],
            swiftSettings: strict),
        .testTarget(
            name: "OutsideTests",
            dependencies: [
                "Engine", "Outside", .product(name: "DaybookTestKit", package: "daybook"),
            ],
            swiftSettings: strict),
    ]
)

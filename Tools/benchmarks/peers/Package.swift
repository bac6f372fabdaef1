// swift-tools-version: 6.2
// RocksDB and LMDB as peers of the benchmark: a package of its own, so that nothing else needs their
// headers. Tools/benchmark builds it if they are installed; the benchmarker starts it as a child process.

import PackageDescription

let strict: [SwiftSetting] = [.swiftLanguageMode(.v6), .treatAllWarnings(as: .error)]

let package = Package(
    name: "peers",
    platforms: [.macOS("26.0")],
    targets: [
        .systemLibrary(
            name: "CRocksDB", path: "CRocksDB", pkgConfig: "rocksdb",
            providers: [.apt(["librocksdb-dev"]), .brew(["rocksdb"])]),
        .systemLibrary(
            name: "CLMDB", path: "CLMDB", pkgConfig: "lmdb",
            providers: [.apt(["liblmdb-dev"]), .brew(["lmdb"])]),
        .executableTarget(
            name: "peers", dependencies: ["CLMDB", "CRocksDB"], path: "Command",
            swiftSettings: strict),
    ]
)

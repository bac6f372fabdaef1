// Cached images after a power cut, a kill or a failed call: every image of the view can be read.
// Spec/model/images.md, IMG-17 and IMG-18.

import DaybookTestKit
import Foundation
import TestSupport
import Testing

@testable import DaybookOffline

private func open(_ files: any FileSystem, _ cache: String?) async throws -> OfflineStore {
    let store = try await OfflineStore.open(
        at: URL(filePath: "/log"), cache: cache.map { URL(filePath: $0) }, compaction: nil,
        environment: LogEnvironment(fileSystem: files, sleep: noTimers))
    var limits = ImageCacheLimits()
    limits.thumbnails = 2
    try await store.images.setLimits(limits)
    return store
}

private func names(_ files: any FileSystem, _ folder: String) -> Set<String> {
    Set((try? files.list(folder)) ?? [])
}

/// Stores, replaces, evicts, ends and clears images, then stores one more.
private func work(_ store: OfflineStore) async throws {
    let images = store.images
    try await images.store([1, 1], .thumbnail, "a")
    try await images.store([2, 2], .thumbnail, "b")
    try await images.store([3, 3], .thumbnail, "c")
    try await images.store([2, 2], .preview, "a")
    try await images.remove(.thumbnail, "b")
    try await images.store([1, 1], .thumbnail, "d")
    try await store.append(AssetRemoved(assetId: "d"), durability: .relaxed)
    try await images.clear([.preview])
    try await images.store([4, 4], .thumbnail, "e")
}

/// Checks that every referenced image can be read, that a collection leaves no other file, and that work
/// continues.
private func check(
    _ files: any FileSystem, _ cache: String?, _ place: String
) async throws {
    let store = try await open(files, cache)
    let view = store.view(ImagesView.self)
    for kind in ImageKind.allCases {
        for image in view.leastRecentlyUsed(kind) {
            try #require(await store.images.image(kind, image.id) != nil, "\(place)")
            try #require(store.view(ImagesView.self).image(kind, image.id) != nil, "\(place)")
        }
    }
    // A collection of all files of both folders.
    try await store.images.clear([.albumThumbnail])
    let named = ImageKind.allCases.flatMap { view.leastRecentlyUsed($0).map(\.file.description) }
    try #require(names(files, store.images.files.directory) == Set(named), "\(place)")
    if cache != nil { try #require(names(files, "/log/files") == [], "\(place)") }
    try await store.images.store([9], .thumbnail, "z")
    await store.images.releaseMemory()
    try #require(await store.images.image(.thumbnail, "z") == [9], "\(place)")
    try await store.close()
}

@Suite struct ImagePowerCutTests {
    @Test(.verifies("IMG-18", "IMG-19"), arguments: [nil, "/cache"])
    func `after a power cut or a kill at any operation every cached image can be read`(
        cache: String?
    ) async throws {
        let files = SimulatedFileSystem()
        let store = try await open(files, cache)
        files.record()
        try await work(store)
        let points = files.crashPoints
        #expect(points.count > 30)
        var states = 0
        for point in points {
            var machines = [point.afterKill()]
            point.forEachState(in: .init(combinationsMax: 32, samples: 8)) { machine, _ in
                machines.append(machine)
            }
            for machine in machines {
                states += 1
                try await check(machine, cache, "before \(point.next)")
            }
        }
        print("\(points.count) operations, \(states) states")
        try await store.close()
    }

    @Test(.verifies("IMG-16", "IMG-18", "IMG-19"), arguments: [nil, "/cache"])
    func `a failed call leaves every cached image, and work continues`(
        cache: String?
    ) async throws {
        for fault in SimulatedFault.all {
            for call in 0..<300 {
                let files = SimulatedFileSystem()
                let store = try await open(files, cache)
                files.fail(call: files.calls + call, fault)
                do { try await work(store) } catch {}
                let wasHit = files.faultsHit > 0
                files.endFaults()
                // A read is never an error.
                for id in ["a", "b", "c", "d", "e"] {
                    _ = await store.images.image(.thumbnail, id)
                }
                // After a failed commit the references of the log are unknown.
                _ = try? await store.files.collect()
                try? await store.close()
                try await check(files, cache, "\(fault) at \(call)")
                if !wasHit {
                    #expect(call > 30)
                    break
                }
            }
        }
    }
}

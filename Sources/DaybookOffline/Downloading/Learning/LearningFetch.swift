// One lesson or one set of review sessions until all files are in the file store and it is recorded.
// LearningDownloads decides when, and handles the failure. Spec/model/learning.md, LRN-30, LRN-38.

import Daybook

/// The fetches of a user's lessons and sessions.
struct LearningFetch: Sendable {
    let source: any LearningSource
    let user: String
    let learning: LearningCommands
    let options: DownloadManager.Options

    /// Sessions of a prefetch could not be fetched, and the others are on the device: they are tried again at the
    /// next trigger. A retry by time would fetch the others again as well.
    struct SessionsLeftOut: Error {}

    /// Fetches and records a lesson.
    func lesson(
        _ lessonId: String, _ courseId: String, _ combination: LanguageCombination,
        isExplicit: Bool
    ) async throws -> StoredLesson {
        let unit = try await source.lesson(lessonId, course: courseId, combination)
        return try await fetchFiles(of: unit, isExplicit) { material in
            try await learning.recordLesson(lessonId, course: courseId, material)
        }
    }

    /// Fetches and records sessions, one after the other. A prefetch then removes the others.
    func reviews(
        first count: Int, _ combination: LanguageCombination, isExplicit: Bool
    ) async throws -> [StoredReview] {
        let sessions = try await source.reviews(of: user, combination, first: count).prefix(count)
        var stored: [StoredReview] = []
        var failure: (any Error)?
        var ids: Set<EntityID> = []
        for (order, session) in sessions.enumerated() {
            do {
                if let fault = session.unit.fault { throw fault }
                guard ids.insert(EntityID(session.reviewId)).inserted else {
                    throw DownloadError(.badManifest, "the source returned a review session twice")
                }
                let review = try await fetchFiles(of: session.unit, isExplicit) { material in
                    try await learning.recordReview(
                        ReviewStored(
                            userId: user, reviewId: session.reviewId, combination: combination,
                            courseId: session.courseId, order: order, material: material))
                }
                stored.append(review)
            } catch {
                // It must not keep the others off the device.
                guard try await source.hasFailedForOneSession(error, of: user, combination)
                else { throw error }
                failure = failure ?? error
            }
        }
        // Also after a failure of one session: else the number of sessions would grow with each prefetch.
        // A session whose id could not be read may be any of the stored ones. If none has arrived, as in an outage of
        // the files' server, those on the device stay.
        if !isExplicit, failure == nil || !stored.isEmpty,
            sessions.allSatisfy({ !$0.reviewId.isEmpty })
        {
            try await learning.removeReviews(
                of: user, in: combination, except: sessions.map(\.reviewId))
        }
        if let failure { throw isExplicit ? failure : SessionsLeftOut() }
        return stored
    }

    /// Fetches the files of a unit and records the unit. The files are released at the end, so that without
    /// a record they are deleted.
    private func fetchFiles<Result: Sendable>(
        of unit: LearningUnit, _ isExplicit: Bool,
        record: (LearningMaterial) async throws -> Result
    ) async throws -> Result {
        try Self.check(unit)
        var fetched: [LearningFile] = []
        do {
            var bytes = 0
            try await fetchInParallel(unit.files, atOnce: options.imagesAtOnce, fetchFile) { file in
                fetched.append(file)
                bytes += file.size
                guard bytes <= options.cityBytesMax else {
                    throw DownloadError(
                        .tooLarge,
                        "the files have more than \(options.cityBytesMax) bytes, which is the limit"
                    )
                }
            }
            try Task.checkCancellation()
            let byURL = Dictionary(
                fetched.map { (EntityID($0.url), $0) }, uniquingKeysWith: { a, _ in a })
            let result = try await record(
                LearningMaterial(
                    content: unit.content,
                    files: unit.files.compactMap { byURL[EntityID($0)] }, isExplicit: isExplicit))
            await learning.release(fetched)
            return result
        } catch {
            await learning.release(fetched)
            throw error
        }
    }

    private func fetchFile(_ url: String) async throws -> LearningFile {
        let bytes = try await source.file(url, bytesMax: options.imageBytesMax)
        guard bytes.count <= options.imageBytesMax else {
            throw DownloadError(
                .tooLarge,
                "a file has \(bytes.count) bytes; the limit is \(options.imageBytesMax)")
        }
        // That of HTTP has been checked, and may have the digest that its server states.
        if !(source is HTTPLearningSource), let fault = WebPage.fault(of: bytes, at: url) {
            throw DownloadError(.wrongContent, "a file \(fault)")
        }
        try Task.checkCancellation()
        let file = try await learning.files.storeRetained(bytes)
        return LearningFile(url: url, file: file, size: bytes.count)
    }

    /// Checks the list of files before any is fetched.
    private static func check(_ unit: LearningUnit) throws(DownloadError) {
        guard unit.files.count <= LearningUnit.filesMax else {
            throw DownloadError(
                .badManifest, "the unit has more than \(LearningUnit.filesMax) files")
        }
        guard Set(unit.files.map(EntityID.init)).count == unit.files.count else {
            throw DownloadError(.badManifest, "the unit lists a file twice")
        }
    }
}

// swift-format-ignore-file
// Written by Tools/payloads from the declarations of the payloads. Do not edit.

import Daybook

extension DeclaredObject where Self == CachedImage {
    /// Creates the value from its members.
    public init(id: String, url: String, file: FileID, size: Int, kind: CachedImage.Kind, width: Int, height: Int) { self = CachedImage(id: id, url: url, file: file, size: size, kind: kind, width: width, height: height) }
}
extension CachedImage {
    public static var example: Self { Self(id: "-", url: "-", file: .example, size: 0, kind: .hero, width: 0, height: 0) }
    public mutating func declareMembers(_ members: inout some MemberVisitor) throws(EventError) {
        try members.required("id", &id, .identifier)
        try members.required("url", &url, .identifier)
        try members.required("file", &file, .of(FileID.self))
        try members.required("size", &size, .count)
        try members.required("type", &kind, .choice(Kind.self))
        try members.required("width", &width, .count)
        try members.required("height", &height, .count)
    }
}
extension DeclaredObject where Self == MissingImage {
    /// Creates the value from its members.
    public init(id: String, url: String, reason: String) { self = MissingImage(id: id, url: url, reason: reason) }
}
extension MissingImage {
    public static var example: Self { Self(id: "-", url: "-", reason: "") }
    public mutating func declareMembers(_ members: inout some MemberVisitor) throws(EventError) {
        try members.required("id", &id, .identifier)
        try members.required("url", &url, .identifier)
        try members.required("reason", &reason, .text)
    }
}
extension DeclaredObject where Self == CityData {
    /// Creates the value from its members.
    public init(id: String, name: String, country: String, description: String, costOfLiving: Double, internetSpeed: Double, safetyRating: Double, climate: String, touristAttractions: [TouristAttraction] = [], categories: [CityCategory] = [], relatedCities: [String] = []) { self = CityData(id: id, name: name, country: country, description: description, costOfLiving: costOfLiving, internetSpeed: internetSpeed, safetyRating: safetyRating, climate: climate, touristAttractions: touristAttractions, categories: categories, relatedCities: relatedCities) }
}
extension CityData {
    public static var example: Self { Self(id: "-", name: "", country: "", description: "", costOfLiving: 0, internetSpeed: 0, safetyRating: 0, climate: "") }
    public mutating func declareMembers(_ members: inout some MemberVisitor) throws(EventError) {
        try members.required("id", &id, .identifier)
        try members.required("name", &name, .text)
        try members.required("country", &country, .text)
        try members.required("description", &description, .text)
        try members.required("costOfLiving", &costOfLiving, .number)
        try members.required("internetSpeed", &internetSpeed, .number)
        try members.required("safetyRating", &safetyRating, .number)
        try members.required("climate", &climate, .text)
        try members.required("touristAttractions", &touristAttractions, .objects(TouristAttraction.self))
        try members.required("categories", &categories, .objects(CityCategory.self))
        try members.required("relatedCities", &relatedCities, .identifiers)
    }
}
extension DeclaredObject where Self == CityCategory {
    /// Creates the value from its members.
    public init(id: String, name: String) { self = CityCategory(id: id, name: name) }
}
extension CityCategory {
    public static var example: Self { Self(id: "-", name: "") }
    public mutating func declareMembers(_ members: inout some MemberVisitor) throws(EventError) {
        try members.required("id", &id, .identifier)
        try members.required("name", &name, .text)
    }
}
extension TouristAttraction.Location {
    static var example: Self { Self(lat: 0, lng: 0) }
    mutating func declareMembers(_ members: inout some MemberVisitor) throws(EventError) {
        try members.required("lat", &lat, .number)
        try members.required("lng", &lng, .number)
    }
}
extension DeclaredObject where Self == CitySaved {
    /// Creates the value from its members.
    public init(userId: String, cityId: String) { self = CitySaved(userId: userId, cityId: cityId) }
}
extension CitySaved {
    public static var example: Self { Self(userId: "-", cityId: "-") }
    public mutating func declareMembers(_ members: inout some MemberVisitor) throws(EventError) {
        try members.required("userId", &userId, .identifier)
        try members.required("cityId", &cityId, .identifier)
    }
}
extension DeclaredObject where Self == CityUnsaved {
    /// Creates the value from its members.
    public init(userId: String, cityId: String) { self = CityUnsaved(userId: userId, cityId: cityId) }
}
extension CityUnsaved {
    public static var example: Self { Self(userId: "-", cityId: "-") }
    public mutating func declareMembers(_ members: inout some MemberVisitor) throws(EventError) {
        try members.required("userId", &userId, .identifier)
        try members.required("cityId", &cityId, .identifier)
    }
}
extension DeclaredObject where Self == CityCached {
    /// Creates the value from its members.
    public init(cityId: String, version: Int, isExplicitDownload: Bool, cityData: [UInt8], images: [CachedImage], missingImages: [MissingImage] = []) { self = CityCached(cityId: cityId, version: version, isExplicitDownload: isExplicitDownload, cityData: cityData, images: images, missingImages: missingImages) }
}
extension CityCached {
    public static var example: Self { Self(cityId: "-", version: 1, isExplicitDownload: false, cityData: [], images: []) }
    public mutating func declareMembers(_ members: inout some MemberVisitor) throws(EventError) {
        try members.required("cityId", &cityId, .identifier)
        try members.required("version", &version, .count(1...))
        try members.required("isExplicitDownload", &isExplicitDownload, .flag)
        try members.required("cityData", &cityData, CityDocument(of: cityId))
        try members.required("images", &images, .objects(CachedImage.self))
        try members.optional("missingImages", &missingImages, .objects(MissingImage.self), missing: [])
    }
}
extension DeclaredObject where Self == CityRemoved {
    /// Creates the value from its members.
    public init(cityId: String, reason: CityRemoved.Reason) { self = CityRemoved(cityId: cityId, reason: reason) }
}
extension CityRemoved {
    public static var example: Self { Self(cityId: "-", reason: .user) }
    public mutating func declareMembers(_ members: inout some MemberVisitor) throws(EventError) {
        try members.required("cityId", &cityId, .identifier)
        try members.required("reason", &reason, .choice(Reason.self))
    }
}
extension DeclaredObject where Self == CityAccessed {
    /// Creates the value from its members.
    public init(cityId: String, accessedAt: ZonedTime? = nil) { self = CityAccessed(cityId: cityId, accessedAt: accessedAt) }
}
extension CityAccessed {
    public static var example: Self { Self(cityId: "-") }
    public mutating func declareMembers(_ members: inout some MemberVisitor) throws(EventError) {
        try members.required("cityId", &cityId, .identifier)
        try members.optional("accessedAt", &accessedAt, .of(ZonedTime.self))
    }
}
extension DeclaredObject where Self == AlbumLinks {
    /// Creates the value from its members.
    public init(albumId: String, assetIds: [String] = [], userIds: [String] = []) { self = AlbumLinks(albumId: albumId, assetIds: assetIds, userIds: userIds) }
}
extension AlbumLinks {
    public static var example: Self { Self(albumId: "-") }
    public mutating func declareMembers(_ members: inout some MemberVisitor) throws(EventError) {
        try members.required("albumId", &albumId, .identifier)
        try members.optional("assetIds", &assetIds, .identifiers, missing: [])
        try members.optional("userIds", &userIds, .identifiers, missing: [])
        try members.constraint(.atLeastOne(["assetIds", "userIds"]), isMet: !assetIds.isEmpty || !userIds.isEmpty)
    }
}
extension DeclaredObject where Self == LearningMaterial {
    /// Creates the value from its members.
    public init(content: [UInt8], files: [LearningFile] = [], isExplicit: Bool) { self = LearningMaterial(content: content, files: files, isExplicit: isExplicit) }
}
extension LearningMaterial {
    public static var example: Self { Self(content: [], isExplicit: false) }
    public mutating func declareMembers(_ members: inout some MemberVisitor) throws(EventError) {
        try members.required("content", &content, .writtenObject)
        try members.optional("files", &files, .objects(LearningFile.self, uniqueBy: "url"), missing: [])
        try members.required("isExplicit", &isExplicit, .flag)
    }
}
extension DeclaredObject where Self == UserStored {
    /// Creates the value from its members.
    public init(userId: String, info: [UInt8]? = nil) { self = UserStored(userId: userId, info: info) }
}
extension UserStored {
    public static var example: Self { Self(userId: "-") }
    public mutating func declareMembers(_ members: inout some MemberVisitor) throws(EventError) {
        try members.required("userId", &userId, .identifier)
        try members.optional("info", &info, .writtenObject)
    }
}
extension DeclaredObject where Self == PageRemoved {
    /// Creates the value from its members.
    public init(city: String, language: String, path: String) { self = PageRemoved(city: city, language: language, path: path) }
}
extension PageRemoved {
    public static var example: Self { Self(city: "-", language: "-", path: "-") }
    public mutating func declareMembers(_ members: inout some MemberVisitor) throws(EventError) {
        try members.required("city", &city, .identifier)
        try members.required("language", &language, .identifier)
        try members.required("path", &path, .identifier)
    }
}
extension DeclaredObject where Self == ContentUpdated {
    /// Creates the value from its members.
    public init(city: String, language: String, lastUpdate: ZonedTime) { self = ContentUpdated(city: city, language: language, lastUpdate: lastUpdate) }
}
extension ContentUpdated {
    public static var example: Self { Self(city: "-", language: "-", lastUpdate: .example) }
    public mutating func declareMembers(_ members: inout some MemberVisitor) throws(EventError) {
        try members.required("city", &city, .identifier)
        try members.required("language", &language, .identifier)
        try members.required("lastUpdate", &lastUpdate, .of(ZonedTime.self))
    }
}
extension DeclaredObject where Self == ContentUsed {
    /// Creates the value from its members.
    public init(city: String, lastUsage: ZonedTime) { self = ContentUsed(city: city, lastUsage: lastUsage) }
}
extension ContentUsed {
    public static var example: Self { Self(city: "-", lastUsage: .example) }
    public mutating func declareMembers(_ members: inout some MemberVisitor) throws(EventError) {
        try members.required("city", &city, .identifier)
        try members.required("lastUsage", &lastUsage, .of(ZonedTime.self))
    }
}
extension DeclaredObject where Self == ContentRemoved {
    /// Creates the value from its members.
    public init(city: String) { self = ContentRemoved(city: city) }
}
extension ContentRemoved {
    public static var example: Self { Self(city: "-") }
    public mutating func declareMembers(_ members: inout some MemberVisitor) throws(EventError) {
        try members.required("city", &city, .identifier)
    }
}
extension DeclaredObject where Self == ResourceRemoved {
    /// Creates the value from its members.
    public init(city: String, language: String, path: String, url: String) { self = ResourceRemoved(city: city, language: language, path: path, url: url) }
}
extension ResourceRemoved {
    public static var example: Self { Self(city: "-", language: "-", path: "-", url: "-") }
    public mutating func declareMembers(_ members: inout some MemberVisitor) throws(EventError) {
        try members.required("city", &city, .identifier)
        try members.required("language", &language, .identifier)
        try members.required("path", &path, .identifier)
        try members.required("url", &url, .identifier)
    }
}
extension DownloadNumbers {
    public mutating func declareMembers(_ members: inout some MemberVisitor) throws(EventError) {
        try members.required("currentStep", &currentStep, .text)
        try members.required("totalBytes", &totalBytes, .count)
        try members.required("downloadedBytes", &downloadedBytes, .count)
        try members.constraint(.atMost("downloadedBytes", "totalBytes"), isMet: downloadedBytes <= totalBytes)
    }
}
extension DeclaredObject where Self == DownloadQueued {
    /// Creates the value from its members.
    public init(jobId: String, cityId: String, isExplicit: Bool) { self = DownloadQueued(jobId: jobId, cityId: cityId, isExplicit: isExplicit) }
}
extension DownloadQueued {
    public static var example: Self { Self(jobId: "-", cityId: "-", isExplicit: false) }
    public mutating func declareMembers(_ members: inout some MemberVisitor) throws(EventError) {
        try members.required("jobId", &jobId, JobIDKind())
        try members.required("cityId", &cityId, .identifier)
        try members.required("isExplicit", &isExplicit, .flag)
    }
}
extension DeclaredObject where Self == DownloadStarted {
    /// Creates the value from its members.
    public init(jobId: String, numbers: DownloadNumbers) { self = DownloadStarted(jobId: jobId, numbers: numbers) }
}
extension DownloadStarted {
    public static var example: Self { Self(jobId: "-", numbers: .example) }
    public mutating func declareMembers(_ members: inout some MemberVisitor) throws(EventError) {
        try members.required("jobId", &jobId, JobIDKind())
        try numbers.declareMembers(&members)
    }
}
extension DeclaredObject where Self == DownloadPaused {
    /// Creates the value from its members.
    public init(jobId: String, numbers: DownloadNumbers, reason: PauseReason) { self = DownloadPaused(jobId: jobId, numbers: numbers, reason: reason) }
}
extension DownloadPaused {
    public static var example: Self { Self(jobId: "-", numbers: .example, reason: .user) }
    public mutating func declareMembers(_ members: inout some MemberVisitor) throws(EventError) {
        try members.required("jobId", &jobId, JobIDKind())
        try numbers.declareMembers(&members)
        try members.required("reason", &reason, .choice(PauseReason.self))
    }
}
extension DeclaredObject where Self == DownloadCompleted {
    /// Creates the value from its members.
    public init(jobId: String, totalBytes: Int) { self = DownloadCompleted(jobId: jobId, totalBytes: totalBytes) }
}
extension DownloadCompleted {
    public static var example: Self { Self(jobId: "-", totalBytes: 0) }
    public mutating func declareMembers(_ members: inout some MemberVisitor) throws(EventError) {
        try members.required("jobId", &jobId, JobIDKind())
        try members.required("totalBytes", &totalBytes, .count)
    }
}
extension DeclaredObject where Self == DownloadFailed {
    /// Creates the value from its members.
    public init(jobId: String, numbers: DownloadNumbers, errorMessage: String) { self = DownloadFailed(jobId: jobId, numbers: numbers, errorMessage: errorMessage) }
}
extension DownloadFailed {
    public static var example: Self { Self(jobId: "-", numbers: .example, errorMessage: "-") }
    public mutating func declareMembers(_ members: inout some MemberVisitor) throws(EventError) {
        try members.required("jobId", &jobId, JobIDKind())
        try numbers.declareMembers(&members)
        try members.required("errorMessage", &errorMessage, .nonEmptyText)
    }
}
extension DeclaredObject where Self == DownloadCancelled {
    /// Creates the value from its members.
    public init(jobId: String) { self = DownloadCancelled(jobId: jobId) }
}
extension DownloadCancelled {
    public static var example: Self { Self(jobId: "-") }
    public mutating func declareMembers(_ members: inout some MemberVisitor) throws(EventError) {
        try members.required("jobId", &jobId, JobIDKind())
    }
}
extension DeclaredObject where Self == DownloadRemoved {
    /// Creates the value from its members.
    public init(jobId: String) { self = DownloadRemoved(jobId: jobId) }
}
extension DownloadRemoved {
    public static var example: Self { Self(jobId: "-") }
    public mutating func declareMembers(_ members: inout some MemberVisitor) throws(EventError) {
        try members.required("jobId", &jobId, JobIDKind())
    }
}
extension DeclaredObject where Self == ImageCached {
    /// Creates the value from its members.
    public init(kind: ImageKind, id: String, file: FileID, size: Int) { self = ImageCached(kind: kind, id: id, file: file, size: size) }
}
extension ImageCached {
    public static var example: Self { Self(kind: .thumbnail, id: "-", file: .example, size: 0) }
    public mutating func declareMembers(_ members: inout some MemberVisitor) throws(EventError) {
        try members.required("kind", &kind, .choice(ImageKind.self))
        try members.required("id", &id, .identifier)
        try members.required("file", &file, .of(FileID.self))
        try members.required("size", &size, .count)
    }
}
extension DeclaredObject where Self == ImageRemoved {
    /// Creates the value from its members.
    public init(kind: ImageKind, id: String, reason: ImageRemoved.Reason) { self = ImageRemoved(kind: kind, id: id, reason: reason) }
}
extension ImageRemoved {
    public static var example: Self { Self(kind: .thumbnail, id: "-", reason: .user) }
    public mutating func declareMembers(_ members: inout some MemberVisitor) throws(EventError) {
        try members.required("kind", &kind, .choice(ImageKind.self))
        try members.required("id", &id, .identifier)
        try members.required("reason", &reason, .choice(Reason.self))
    }
}
extension DeclaredObject where Self == ImageAccessed {
    /// Creates the value from its members.
    public init(kind: ImageKind, id: String, accessedAt: ZonedTime? = nil) { self = ImageAccessed(kind: kind, id: id, accessedAt: accessedAt) }
}
extension ImageAccessed {
    public static var example: Self { Self(kind: .thumbnail, id: "-") }
    public mutating func declareMembers(_ members: inout some MemberVisitor) throws(EventError) {
        try members.required("kind", &kind, .choice(ImageKind.self))
        try members.required("id", &id, .identifier)
        try members.optional("accessedAt", &accessedAt, .of(ZonedTime.self))
    }
}
extension DeclaredObject where Self == ImagesCleared {
    /// Creates the value from its members.
    public init(kinds: [ImageKind]) { self = ImagesCleared(kinds: kinds) }
}
extension ImagesCleared {
    public static var example: Self { Self(kinds: []) }
    public mutating func declareMembers(_ members: inout some MemberVisitor) throws(EventError) {
        try members.required("kinds", &kinds, .choices(ImageKind.self))
    }
}
extension LanguageCombination {
    public mutating func declareMembers(_ members: inout some MemberVisitor) throws(EventError) {
        try members.required("learnLanguage", &learnLanguage, .identifier)
        try members.required("displayLanguage", &displayLanguage, .identifier)
    }
}
extension DeclaredObject where Self == ListedCourse {
    /// Creates the value from its members.
    public init(id: String, title: String? = nil, lessons: [ListedLesson]) { self = ListedCourse(id: id, title: title, lessons: lessons) }
}
extension ListedCourse {
    public static var example: Self { Self(id: "-", lessons: []) }
    public mutating func declareMembers(_ members: inout some MemberVisitor) throws(EventError) {
        try members.required("id", &id, .identifier)
        try members.optional("title", &title, .text)
        try members.required("lessons", &lessons, .objects(ListedLesson.self, uniqueBy: "id"))
    }
}
extension DeclaredObject where Self == ListedLesson {
    /// Creates the value from its members.
    public init(id: String, title: String? = nil) { self = ListedLesson(id: id, title: title) }
}
extension ListedLesson {
    public static var example: Self { Self(id: "-") }
    public mutating func declareMembers(_ members: inout some MemberVisitor) throws(EventError) {
        try members.required("id", &id, .identifier)
        try members.optional("title", &title, .text)
    }
}
extension DeclaredObject where Self == CombinationSelected {
    /// Creates the value from its members.
    public init(userId: String, combination: LanguageCombination) { self = CombinationSelected(userId: userId, combination: combination) }
}
extension CombinationSelected {
    public static var example: Self { Self(userId: "-", combination: .example) }
    public mutating func declareMembers(_ members: inout some MemberVisitor) throws(EventError) {
        try members.required("userId", &userId, .identifier)
        try combination.declareMembers(&members)
    }
}
extension DeclaredObject where Self == CoursesListed {
    /// Creates the value from its members.
    public init(combination: LanguageCombination, courses: [ListedCourse]) { self = CoursesListed(combination: combination, courses: courses) }
}
extension CoursesListed {
    public static var example: Self { Self(combination: .example, courses: []) }
    public mutating func declareMembers(_ members: inout some MemberVisitor) throws(EventError) {
        try combination.declareMembers(&members)
        try members.required("courses", &courses, .objects(ListedCourse.self, uniqueBy: "id"))
    }
}
extension DeclaredObject where Self == VocabularyCached {
    /// Creates the value from its members.
    public init(userId: String, combination: LanguageCombination, items: [VocabularyItem]) { self = VocabularyCached(userId: userId, combination: combination, items: items) }
}
extension VocabularyCached {
    public static var example: Self { Self(userId: "-", combination: .example, items: []) }
    public mutating func declareMembers(_ members: inout some MemberVisitor) throws(EventError) {
        try members.required("userId", &userId, .identifier)
        try combination.declareMembers(&members)
        try members.required("items", &items, VocabularyItems())
    }
}
extension VocabularyItems.Named {
    static var example: Self { Self(id: "-") }
    mutating func declareMembers(_ members: inout some MemberVisitor) throws(EventError) {
        try members.required("id", &id, .identifier)
    }
}
extension DeclaredObject where Self == LessonStored {
    /// Creates the value from its members.
    public init(courseId: String, lessonId: String, material: LearningMaterial) { self = LessonStored(courseId: courseId, lessonId: lessonId, material: material) }
}
extension LessonStored {
    public static var example: Self { Self(courseId: "-", lessonId: "-", material: .example) }
    public mutating func declareMembers(_ members: inout some MemberVisitor) throws(EventError) {
        try members.required("courseId", &courseId, .identifier)
        try members.required("lessonId", &lessonId, .identifier)
        try material.declareMembers(&members)
    }
}
extension DeclaredObject where Self == LessonRemoved {
    /// Creates the value from its members.
    public init(courseId: String, lessonId: String) { self = LessonRemoved(courseId: courseId, lessonId: lessonId) }
}
extension LessonRemoved {
    public static var example: Self { Self(courseId: "-", lessonId: "-") }
    public mutating func declareMembers(_ members: inout some MemberVisitor) throws(EventError) {
        try members.required("courseId", &courseId, .identifier)
        try members.required("lessonId", &lessonId, .identifier)
    }
}
extension DeclaredObject where Self == ReviewStored {
    /// Creates the value from its members.
    public init(userId: String, reviewId: String, combination: LanguageCombination, courseId: String? = nil, order: Int, material: LearningMaterial) { self = ReviewStored(userId: userId, reviewId: reviewId, combination: combination, courseId: courseId, order: order, material: material) }
}
extension ReviewStored {
    public static var example: Self { Self(userId: "-", reviewId: "-", combination: .example, order: 0, material: .example) }
    public mutating func declareMembers(_ members: inout some MemberVisitor) throws(EventError) {
        try members.required("userId", &userId, .identifier)
        try members.required("reviewId", &reviewId, .identifier)
        try combination.declareMembers(&members)
        try members.optional("courseId", &courseId, .identifier)
        try members.required("order", &order, .count)
        try material.declareMembers(&members)
    }
}
extension DeclaredObject where Self == ReviewRemoved {
    /// Creates the value from its members.
    public init(userId: String, reviewId: String) { self = ReviewRemoved(userId: userId, reviewId: reviewId) }
}
extension ReviewRemoved {
    public static var example: Self { Self(userId: "-", reviewId: "-") }
    public mutating func declareMembers(_ members: inout some MemberVisitor) throws(EventError) {
        try members.required("userId", &userId, .identifier)
        try members.required("reviewId", &reviewId, .identifier)
    }
}
extension DeclaredObject where Self == LearningFile {
    /// Creates the value from its members.
    public init(url: String, file: FileID, size: Int) { self = LearningFile(url: url, file: file, size: size) }
}
extension LearningFile {
    public static var example: Self { Self(url: "-", file: .example, size: 0) }
    public mutating func declareMembers(_ members: inout some MemberVisitor) throws(EventError) {
        try members.required("url", &url, .identifier)
        try members.required("file", &file, .of(FileID.self))
        try members.required("size", &size, .count)
    }
}
extension DeclaredObject where Self == Album {
    /// Creates the value from its members.
    public init(id: String, remoteId: String? = nil, ownerId: String, name: String, createdAt: ZonedTime, modifiedAt: ZonedTime, startDate: ZonedTime? = nil, endDate: ZonedTime? = nil, thumbnailAssetId: String? = nil) { self = Album(id: id, remoteId: remoteId, ownerId: ownerId, name: name, createdAt: createdAt, modifiedAt: modifiedAt, startDate: startDate, endDate: endDate, thumbnailAssetId: thumbnailAssetId) }
}
extension Album {
    public static var example: Self { Self(id: "-", ownerId: "-", name: "", createdAt: .example, modifiedAt: .example) }
    public mutating func declareMembers(_ members: inout some MemberVisitor) throws(EventError) {
        try members.required("albumId", &id, .identifier)
        try members.optional("remoteId", &remoteId, .identifier)
        try members.required("ownerId", &ownerId, .identifier)
        try members.required("name", &name, .text)
        try members.required("createdAt", &createdAt, .of(ZonedTime.self))
        try members.required("modifiedAt", &modifiedAt, .of(ZonedTime.self))
        try members.optional("startDate", &startDate, .of(ZonedTime.self))
        try members.optional("endDate", &endDate, .of(ZonedTime.self))
        try members.optional("thumbnailAssetId", &thumbnailAssetId, .identifier)
    }
}
extension DeclaredObject where Self == AlbumStored {
    /// Creates the value from its members.
    public init(_ album: Album) { self = AlbumStored(album: album) }
}
extension AlbumStored {
    public static var example: Self { Self(album: .example) }
    public mutating func declareMembers(_ members: inout some MemberVisitor) throws(EventError) {
        try album.declareMembers(&members)
    }
}
extension DeclaredObject where Self == AlbumRemoved {
    /// Creates the value from its members.
    public init(albumId: String) { self = AlbumRemoved(albumId: albumId) }
}
extension AlbumRemoved {
    public static var example: Self { Self(albumId: "-") }
    public mutating func declareMembers(_ members: inout some MemberVisitor) throws(EventError) {
        try members.required("albumId", &albumId, .identifier)
    }
}
extension DeclaredObject where Self == AlbumLinked {
    /// Creates the value from its members.
    public init(_ links: AlbumLinks) { self = AlbumLinked(links: links) }
}
extension AlbumLinked {
    public static var example: Self { Self(links: .example) }
    public mutating func declareMembers(_ members: inout some MemberVisitor) throws(EventError) {
        try links.declareMembers(&members)
    }
}
extension DeclaredObject where Self == AlbumUnlinked {
    /// Creates the value from its members.
    public init(_ links: AlbumLinks) { self = AlbumUnlinked(links: links) }
}
extension AlbumUnlinked {
    public static var example: Self { Self(links: .example) }
    public mutating func declareMembers(_ members: inout some MemberVisitor) throws(EventError) {
        try links.declareMembers(&members)
    }
}
extension DeclaredObject where Self == AssetRemoved {
    /// Creates the value from its members.
    public init(assetId: String) { self = AssetRemoved(assetId: assetId) }
}
extension AssetRemoved {
    public static var example: Self { Self(assetId: "-") }
    public mutating func declareMembers(_ members: inout some MemberVisitor) throws(EventError) {
        try members.required("assetId", &assetId, .identifier)
    }
}
extension DeclaredObject where Self == BackupAlbum {
    /// Creates the value from its members.
    public init(id: String, name: String, selection: BackupSelection, lastBackup: ZonedTime? = nil) { self = BackupAlbum(id: id, name: name, selection: selection, lastBackup: lastBackup) }
}
extension BackupAlbum {
    public static var example: Self { Self(id: "-", name: "", selection: .include) }
    public mutating func declareMembers(_ members: inout some MemberVisitor) throws(EventError) {
        try members.required("albumId", &id, .identifier)
        try members.required("name", &name, .text)
        try members.required("selection", &selection, .choice(BackupSelection.self))
        try members.optional("lastBackup", &lastBackup, .of(ZonedTime.self))
    }
}
extension DeclaredObject where Self == AssetETag {
    /// Creates the value from its members.
    public init(id: String, assetCount: Int, time: ZonedTime) { self = AssetETag(id: id, assetCount: assetCount, time: time) }
}
extension AssetETag {
    public static var example: Self { Self(id: "-", assetCount: 0, time: .example) }
    public mutating func declareMembers(_ members: inout some MemberVisitor) throws(EventError) {
        try members.required("userId", &id, .identifier)
        try members.required("assetCount", &assetCount, .count)
        try members.required("time", &time, .of(ZonedTime.self))
    }
}
extension DeviceAsset {
    public mutating func declareMembers(_ members: inout some MemberVisitor) throws(EventError) {
        try members.required("platform", &platform, .choice(DevicePlatform.self))
        try members.required("assetId", &id, .identifier)
        try members.required("hash", &hash, .identifier)
        try members.optional("modifiedTime", &modifiedTime, .of(ZonedTime.self))
        try members.constraint(.requiredWhere("platform", is: "ios", "modifiedTime"), isMet: platform != .ios || modifiedTime != nil)
    }
}
extension DeclaredObject where Self == BackupAlbumStored {
    /// Creates the value from its members.
    public init(_ album: BackupAlbum) { self = BackupAlbumStored(album: album) }
}
extension BackupAlbumStored {
    public static var example: Self { Self(album: .example) }
    public mutating func declareMembers(_ members: inout some MemberVisitor) throws(EventError) {
        try album.declareMembers(&members)
    }
}
extension DeclaredObject where Self == BackupAlbumRemoved {
    /// Creates the value from its members.
    public init(albumId: String) { self = BackupAlbumRemoved(albumId: albumId) }
}
extension BackupAlbumRemoved {
    public static var example: Self { Self(albumId: "-") }
    public mutating func declareMembers(_ members: inout some MemberVisitor) throws(EventError) {
        try members.required("albumId", &albumId, .identifier)
    }
}
extension DeclaredObject where Self == DuplicateStored {
    /// Creates the value from its members.
    public init(deviceAssetId: String) { self = DuplicateStored(deviceAssetId: deviceAssetId) }
}
extension DuplicateStored {
    public static var example: Self { Self(deviceAssetId: "-") }
    public mutating func declareMembers(_ members: inout some MemberVisitor) throws(EventError) {
        try members.required("deviceAssetId", &deviceAssetId, .identifier)
    }
}
extension DeclaredObject where Self == DuplicateRemoved {
    /// Creates the value from its members.
    public init(deviceAssetId: String) { self = DuplicateRemoved(deviceAssetId: deviceAssetId) }
}
extension DuplicateRemoved {
    public static var example: Self { Self(deviceAssetId: "-") }
    public mutating func declareMembers(_ members: inout some MemberVisitor) throws(EventError) {
        try members.required("deviceAssetId", &deviceAssetId, .identifier)
    }
}
extension DeclaredObject where Self == ETagStored {
    /// Creates the value from its members.
    public init(_ etag: AssetETag) { self = ETagStored(etag: etag) }
}
extension ETagStored {
    public static var example: Self { Self(etag: .example) }
    public mutating func declareMembers(_ members: inout some MemberVisitor) throws(EventError) {
        try etag.declareMembers(&members)
    }
}
extension DeclaredObject where Self == ETagRemoved {
    /// Creates the value from its members.
    public init(userId: String) { self = ETagRemoved(userId: userId) }
}
extension ETagRemoved {
    public static var example: Self { Self(userId: "-") }
    public mutating func declareMembers(_ members: inout some MemberVisitor) throws(EventError) {
        try members.required("userId", &userId, .identifier)
    }
}
extension DeclaredObject where Self == DeviceAssetStored {
    /// Creates the value from its members.
    public init(_ asset: DeviceAsset) { self = DeviceAssetStored(asset: asset) }
}
extension DeviceAssetStored {
    public static var example: Self { Self(asset: .example) }
    public mutating func declareMembers(_ members: inout some MemberVisitor) throws(EventError) {
        try asset.declareMembers(&members)
    }
}
extension DeclaredObject where Self == DeviceAssetRemoved {
    /// Creates the value from its members.
    public init(platform: DevicePlatform, assetId: String) { self = DeviceAssetRemoved(platform: platform, assetId: assetId) }
}
extension DeviceAssetRemoved {
    public static var example: Self { Self(platform: .android, assetId: "-") }
    public mutating func declareMembers(_ members: inout some MemberVisitor) throws(EventError) {
        try members.required("platform", &platform, .choice(DevicePlatform.self))
        try members.required("assetId", &assetId, .identifier)
    }
}
extension DeclaredObject where Self == NoteAdded {
    /// Creates the value from its members.
    public init(noteId: String, cityId: String, content: String, createdBy: String) { self = NoteAdded(noteId: noteId, cityId: cityId, content: content, createdBy: createdBy) }
}
extension NoteAdded {
    public static var example: Self { Self(noteId: "-", cityId: "-", content: "", createdBy: "-") }
    public mutating func declareMembers(_ members: inout some MemberVisitor) throws(EventError) {
        try members.required("noteId", &noteId, .identifier)
        try members.required("cityId", &cityId, .identifier)
        try members.required("content", &content, .text)
        try members.required("createdBy", &createdBy, .identifier)
    }
}
extension DeclaredObject where Self == NoteUpdated {
    /// Creates the value from its members.
    public init(noteId: String, content: String, updatedBy: String) { self = NoteUpdated(noteId: noteId, content: content, updatedBy: updatedBy) }
}
extension NoteUpdated {
    public static var example: Self { Self(noteId: "-", content: "", updatedBy: "-") }
    public mutating func declareMembers(_ members: inout some MemberVisitor) throws(EventError) {
        try members.required("noteId", &noteId, .identifier)
        try members.required("content", &content, .text)
        try members.required("updatedBy", &updatedBy, .identifier)
    }
}
extension DeclaredObject where Self == NoteDeleted {
    /// Creates the value from its members.
    public init(noteId: String, deletedBy: String) { self = NoteDeleted(noteId: noteId, deletedBy: deletedBy) }
}
extension NoteDeleted {
    public static var example: Self { Self(noteId: "-", deletedBy: "-") }
    public mutating func declareMembers(_ members: inout some MemberVisitor) throws(EventError) {
        try members.required("noteId", &noteId, .identifier)
        try members.required("deletedBy", &deletedBy, .identifier)
    }
}
extension DeclaredObject where Self == PreferencesUpdated {
    /// Creates the value from its members.
    public init(userId: String, changes: PreferencesUpdated.Changes) { self = PreferencesUpdated(userId: userId, changes: changes) }
}
extension PreferencesUpdated {
    public static var example: Self { Self(userId: "-", changes: .example) }
    public mutating func declareMembers(_ members: inout some MemberVisitor) throws(EventError) {
        try members.required("userId", &userId, .identifier)
        try members.required("changes", &changes, .changes(Changes.self))
    }
}
extension PreferencesUpdated.Changes {
    public static var example: Self { Self() }
    public mutating func declareMembers(_ members: inout some MemberVisitor) throws(EventError) {
        try members.optional("autoDownloadEnabled", &autoDownloadEnabled, .flag)
        try members.optional("wifiOnlyDownload", &wifiOnlyDownload, .flag)
        try members.optional("maxStorageLimit", &maxStorageLimit, .count)
        try members.optional("autoSync", &autoSync, .flag)
        try members.optional("showStaleDataWarning", &showStaleDataWarning, .flag)
        try members.optional("pruneAfterDays", &pruneAfterDays, .count)
    }
}
extension DeclaredObject where Self == CourseActivated {
    /// Creates the value from its members.
    public init(userId: String, courseId: String) { self = CourseActivated(userId: userId, courseId: courseId) }
}
extension CourseActivated {
    public static var example: Self { Self(userId: "-", courseId: "-") }
    public mutating func declareMembers(_ members: inout some MemberVisitor) throws(EventError) {
        try members.required("userId", &userId, .identifier)
        try members.required("courseId", &courseId, .identifier)
    }
}
extension DeclaredObject where Self == LessonCompleted {
    /// Creates the value from its members.
    public init(userId: String, courseId: String, lessonId: String, score: Double? = nil, durationSeconds: Double? = nil) { self = LessonCompleted(userId: userId, courseId: courseId, lessonId: lessonId, score: score, durationSeconds: durationSeconds) }
}
extension LessonCompleted {
    public static var example: Self { Self(userId: "-", courseId: "-", lessonId: "-") }
    public mutating func declareMembers(_ members: inout some MemberVisitor) throws(EventError) {
        try members.required("userId", &userId, .identifier)
        try members.required("courseId", &courseId, .identifier)
        try members.required("lessonId", &lessonId, .identifier)
        try members.optional("score", &score, .number(0...1))
        try members.optional("durationSeconds", &durationSeconds, .number(0...))
    }
}
extension DeclaredObject where Self == ReviewCompleted {
    /// Creates the value from its members.
    public init(userId: String, courseId: String? = nil, reviewId: String, itemsSeen: Int, itemsCorrect: Int) { self = ReviewCompleted(userId: userId, courseId: courseId, reviewId: reviewId, itemsSeen: itemsSeen, itemsCorrect: itemsCorrect) }
}
extension ReviewCompleted {
    public static var example: Self { Self(userId: "-", reviewId: "-", itemsSeen: 0, itemsCorrect: 0) }
    public mutating func declareMembers(_ members: inout some MemberVisitor) throws(EventError) {
        try members.required("userId", &userId, .identifier)
        try members.optional("courseId", &courseId, .identifier)
        try members.required("reviewId", &reviewId, .identifier)
        try members.required("itemsSeen", &itemsSeen, .count)
        try members.required("itemsCorrect", &itemsCorrect, .count)
        try members.constraint(.atMost("itemsCorrect", "itemsSeen"), isMet: itemsCorrect <= itemsSeen)
    }
}
extension DeclaredObject where Self == SettingDeleted {
    /// Creates the value from its members.
    public init(key: String) { self = SettingDeleted(key: key) }
}
extension SettingDeleted {
    public static var example: Self { Self(key: "-") }
    public mutating func declareMembers(_ members: inout some MemberVisitor) throws(EventError) {
        try members.required("key", &key, .identifier)
    }
}
extension OfflineModel {
    /// The rules of the types that `catalogue` does not name: their events stay on the device.
    static let keptTypes: [EventRule] = [
        .of(CityCached.self), .of(CityRemoved.self), .of(CityAccessed.self), .of(UserStored.self),
        .of(CitiesListed.self), .of(LanguagesListed.self), .of(PageStored.self), .of(PageRemoved.self),
        .of(ContentUpdated.self), .of(ContentUsed.self), .of(ContentRemoved.self), .of(ResourceStored.self),
        .of(ResourceRemoved.self), .of(DownloadQueued.self), .of(DownloadStarted.self), .of(DownloadPaused.self),
        .of(DownloadCompleted.self), .of(DownloadFailed.self), .of(DownloadCancelled.self),
        .of(DownloadRemoved.self), .of(ImageCached.self), .of(ImageRemoved.self), .of(ImageAccessed.self),
        .of(ImagesCleared.self), .of(CombinationSelected.self), .of(CoursesListed.self), .of(VocabularyCached.self),
        .of(LessonStored.self), .of(LessonRemoved.self), .of(ReviewStored.self), .of(ReviewRemoved.self),
        .of(AlbumStored.self), .of(AlbumRemoved.self), .of(AlbumLinked.self), .of(AlbumUnlinked.self),
        .of(AssetStored.self), .of(AssetRemoved.self), .of(BackupAlbumStored.self), .of(BackupAlbumRemoved.self),
        .of(DuplicateStored.self), .of(DuplicateRemoved.self), .of(ETagStored.self), .of(ETagRemoved.self),
        .of(DeviceAssetStored.self), .of(DeviceAssetRemoved.self), .of(SettingPut.self), .of(SettingDeleted.self),
    ]
}

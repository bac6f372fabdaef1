// The second part of the folder layout: the files of pages, and their list. Spec/model/content.md,
// CONT-33.

import Daybook

extension ContentLayoutWriter {
    /// Writes the files of a city and their list.
    func writeResources(
        of city: String, _ read: (FileID) throws -> [UInt8], _ summary: inout Summary
    ) throws {
        let languages = content.resourceLanguages(of: city).filter {
            !content.resources(city: city, language: $0).isEmpty
        }
        guard !languages.isEmpty else { return }
        guard let folder = try createFolder(of: city, in: path(ContentLayout.resources), &summary)
        else { return }
        try fileSystem.createDirectory(folder + "/" + ContentLayout.files)
        var written = Written()
        var members: [[UInt8]] = []
        for language in languages {
            var byPath: [(path: String, urls: JSONObjectWriter)] = []
            for resource in content.resources(city: city, language: language) {
                try Task.checkCancellation()
                guard
                    let name = try write(resource, to: folder, read, &written, &summary)
                else { continue }
                var entry = JSONObjectWriter()
                // Relative, so that the folder can be moved.
                entry.appendMember("file_path", relativePath(of: name, in: city))
                entry.appendMember("last_update", resource.lastUpdate.text)
                if let hash = resource.hash { entry.appendMember("hash", hash) }
                try entry.appendProperties(
                    resource.properties, .file, beside: ContentResource.memberNames)
                if byPath.last.map({ EntityID($0.path) }) != EntityID(resource.path) {
                    byPath.append((resource.path, JSONObjectWriter()))
                }
                byPath[byPath.count - 1].urls.appendMember(resource.url, raw: entry.finished())
                summary.resources += 1
            }
            guard !byPath.isEmpty else { continue }
            var writer = JSONObjectWriter()
            for page in byPath { writer.appendMember(page.path, raw: page.urls.finished()) }
            members.append(Self.member(language, writer.finished()))
        }
        guard !members.isEmpty else {
            // All files were left out.
            try fileSystem.removeDirectory(folder + "/" + ContentLayout.files)
            return try fileSystem.removeDirectory(folder)
        }
        for name in written.folders {
            try fileSystem.syncDirectory("\(folder)/\(ContentLayout.files)/\(name)")
        }
        try fileSystem.syncDirectory(folder + "/" + ContentLayout.files)
        try write(folder + "/" + ContentLayout.fileList, "{", members, "}", &summary)
        try fileSystem.syncDirectory(folder)
    }

    /// The files and folders of a city that were written.
    private struct Written {
        var files: [ResourceName: FileID] = [:]
        var folders: Set<String> = []
    }

    private func relativePath(of name: ResourceName, in city: String) -> String {
        let city = (try? ContentLayout.name(of: city)) ?? ""
        return [ContentLayout.resources, city, ContentLayout.files, name.folder, name.file]
            .joined(separator: "/")
    }

    /// Writes a file unless it was written before.
    ///
    /// - Returns: its name; nil if it was left out.
    private func write(
        _ resource: CachedResource, to folder: String, _ read: (FileID) throws -> [UInt8],
        _ written: inout Written, _ summary: inout Summary
    ) throws -> ResourceName? {
        let name = try ResourceName(path: resource.path, url: resource.url)
        if let other = written.files[name] {
            guard other != resource.file else { return name }
            // Two languages can have different files for one path and URL; the layout cannot.
            summary.leftOut.append(
                "\(resource.url) of the page \(resource.path): another language has another file "
                    + "under this name")
            return nil
        }
        let bytes: [UInt8]
        do { bytes = try read(resource.file) } catch let error as FileStoreError
            where error.code == .missing || error.code == .damaged
        {
            summary.leftOut.append(
                "\(resource.url) of the page \(resource.path): \(error.description)")
            return nil
        }
        let page = "\(folder)/\(ContentLayout.files)/\(name.folder)"
        if written.folders.insert(name.folder).inserted {
            try fileSystem.createDirectory(page)
        }
        let file = try LayoutFile("\(page)/\(name.file)", fileSystem, bytesMax: .max)
        try file.write(bytes)
        summary.bytes += try file.finish()
        written.files[name] = resource.file
        return name
    }
}

extension ContentLayout {
    /// Reads and checks the content of a file of a log that another process may have open.
    ///
    /// - Throws: `FileStoreError`: `missing`, `damaged`, `io`.
    public static func content(
        of file: FileID, in log: String, _ fileSystem: any FileSystem
    ) throws(FileStoreError) -> [UInt8] {
        let path = "\(log)/\(LogDirectory.files)/\(file)"
        let bytes: [UInt8]
        do throws(FileError) {
            let opened = try fileSystem.open(path, .read)
            // A file above the maximum size is read in part, so the check reports it as damaged.
            let size = min(try opened.size(), FileStore.fileBytesMax)
            bytes = try opened.read(at: 0, count: size)
        } catch { throw FileStoreError(error) }
        guard FileID(of: bytes) == file else { throw FileStoreError.damaged(path, file) }
        return bytes
    }
}

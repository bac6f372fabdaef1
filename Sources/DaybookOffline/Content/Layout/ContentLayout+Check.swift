// Checks that an export has written a folder, before another export replaces and deletes it.
// Spec/model/content.md, CONT-36.

import Daybook

extension ContentLayout {
    /// The reason for which a folder does not have this layout; nil if it has. Checks the names and kinds
    /// of all entries, not their content.
    ///
    /// - Throws: `FileError`.
    /// - Complexity: O(entries).
    public static func fault(of folder: String, _ fileSystem: any FileSystem) throws -> String? {
        let source = LayoutSource(folder, fileSystem)
        for name in [meta, content, resources] where try source.kind(name) == .nothing {
            return "has no \(name)"
        }
        let pages = Set(PageKind.allCases.map(file))
        return try fault(source, "") { name in
            switch name {
            case meta, cities: .file
            case content:
                .folder { city in
                    codeFolder(city) { name in
                        name == languages
                            ? .file : codeFolder(name) { pages.contains($0) ? .file : nil }
                    }
                }
            case resources:
                .folder { city in
                    codeFolder(city) { name in
                        switch name {
                        case fileList: .file
                        case files:
                            .folder { page in
                                isHash(page) ? .folder { isHashed($0) ? .file : nil } : nil
                            }
                        default: nil
                        }
                    }
                }
            default: nil
            }
        }
    }

    /// The expected kind of an entry.
    private indirect enum Shape {
        case file
        /// A folder. The closure returns the kind of an entry by its name, or nil for an invalid name.
        case folder((String) -> Shape?)
    }

    private static func codeFolder(_ name: String, _ shape: @escaping (String) -> Shape?) -> Shape?
    {
        guard let code = try? code(of: name), (try? self.name(of: code)) == name else { return nil }
        return .folder(shape)
    }

    private static let hashDigits = 32

    private static func isHash(_ name: some StringProtocol) -> Bool {
        name.utf8.count == hashDigits
            && name.utf8.allSatisfy { (0x30...0x39).contains($0) || (0x61...0x66).contains($0) }
    }

    private static func isHashed(_ name: String) -> Bool {
        let parts = name.split(separator: ".", omittingEmptySubsequences: false)
        guard parts.count <= 2, isHash(parts[0]) else { return false }
        return parts.count == 1
            || (1...16).contains(parts[1].utf8.count)
                && parts[1].utf8.allSatisfy {
                    (0x30...0x39).contains($0) || (0x41...0x5A).contains($0)
                        || (0x61...0x7A).contains($0)
                }
    }

    private static func fault(
        _ source: LayoutSource, _ folder: String, _ shape: (String) -> Shape?
    ) throws -> String? {
        for name in try source.names(folder).sorted() {
            let path = folder.isEmpty ? name : "\(folder)/\(name)"
            switch (shape(name), try source.kind(path)) {
            case (.file?, .file): break
            case (.folder(let inner)?, .folder):
                if let fault = try fault(source, path, inner) { return fault }
            default: return "contains \(path), which is not part of a content cache"
            }
        }
        return nil
    }
}

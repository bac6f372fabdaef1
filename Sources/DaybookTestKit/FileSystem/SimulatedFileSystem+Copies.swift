// Copies of folders, as a backup or a migration to another device makes them.

import LogStorage

extension SimulatedFileSystem {
    /// Copies a folder, as a backup does: only the inodes differ.
    ///
    /// - Throws: `FileError`.
    package func copyFolder(_ folder: String, to target: String) throws {
        try createDirectory(target)
        for name in try list(folder).sorted() {
            if (try? list("\(folder)/\(name)")) != nil {
                try copyFolder("\(folder)/\(name)", to: "\(target)/\(name)")
                continue
            }
            let file = try open("\(folder)/\(name)", .read)
            let bytes = try file.read(at: 0, count: try file.size())
            let new = try open("\(target)/\(name)", .createNew)
            try new.write(bytes, at: 0)
            try new.sync()
        }
        try syncDirectory(target)
    }
}

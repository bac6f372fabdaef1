// Paths are bytes. For String, a slash and a combining character after it are one character, which is no slash.

extension String {
    /// The index of the last slash of a path.
    package var lastSlash: Index? { utf8.lastIndex(of: UInt8(ascii: "/")) }

    /// Whether a path is a folder's, or leads into it, as they are written.
    package func isPath(in folder: String) -> Bool {
        let folder = folder.utf8.last == UInt8(ascii: "/") ? folder : folder + "/"
        return (self + "/").utf8.starts(with: folder.utf8)
    }
}

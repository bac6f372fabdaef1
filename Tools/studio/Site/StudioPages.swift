// The pages, which are part of the executable: the files of the folder Pages.

import CStudioPages

/// The files that the browser loads.
enum StudioPages {
    /// A file.
    struct Page {
        var contentType: String
        var bytes: [UInt8]
    }

    /// The file of a path; nil if there is none.
    static func page(_ path: String) -> Page? {
        let name = path == "/" ? "index.html" : String(path.dropFirst())
        guard let text = name == scriptName ? script : files[name],
            !modules.contains(name) || name == scriptName
        else { return nil }
        return Page(contentType: contentType(of: name), bytes: Array(text.utf8))
    }

    /// The content of each file of the folder, by its name.
    static let files: [String: String] = {
        var files: [String: String] = [:]
        var next = studio_pages()
        while let page = next?.pointee, let name = page.name, let text = page.text {
            files[String(cString: name)] = String(cString: text)
            next = next?.successor()
        }
        return files
    }()

    private static let scriptName = "studio.js"

    /// All modules as one, so that a browser loads one file: without the lines that import, and without the
    /// word `export`. The names at their top level are distinct.
    static let script = modules.map { name in
        text(name).split(separator: "\n", omittingEmptySubsequences: false)
            .filter { !$0.hasPrefix("import ") }
            .map { $0.hasPrefix("export ") ? $0.dropFirst("export ".count) : $0 }
            .joined(separator: "\n")
    }.joined(separator: "\n")

    /// The content of a file.
    static func text(_ name: String) -> String {
        files[name] ?? ""
    }

    private static func contentType(of name: String) -> String {
        if name.hasSuffix(".js") { return "text/javascript; charset=utf-8" }
        return name.hasSuffix(".css") ? "text/css; charset=utf-8" : "text/html; charset=utf-8"
    }

    /// The modules in the order in which each comes after those that it imports. The first line of
    /// `studio.js` that begins so lists them.
    static let modules: [String] = {
        let line =
            text(scriptName).split(separator: "\n").first { $0.hasPrefix("// modules:") } ?? ""
        return line.split(separator: " ").dropFirst(2).map(String.init)
    }()
}

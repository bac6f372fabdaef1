// Reads lines at a prompt, which can be edited and recalled if the system has libedit. It is loaded at run time;
// without it, lines are read as they come.

import Foundation

/// A prompt on standard error, with a history in a file.
struct LineEditor {
    private typealias ReadLine =
        @convention(c) (UnsafePointer<CChar>?) -> UnsafeMutablePointer<CChar>?
    private typealias UseText = @convention(c) (UnsafePointer<CChar>?) -> Int32
    private typealias SetLimit = @convention(c) (Int32) -> Void

    /// The names of the library: Debian, Fedora, macOS.
    private static let names = ["libedit.so.2", "libedit.so.0", "/usr/lib/libedit.3.dylib"]
    private static let historyMax: Int32 = 1_000

    private var readLine: ReadLine?
    private var addToHistory: UseText?
    private var writeHistory: UseText?
    private let history: Path?

    /// A path as the environment has it: its bytes need not be UTF-8.
    struct Path {
        fileprivate let bytes: [CChar]

        init(_ text: UnsafePointer<CChar>, appending name: StaticString = "") {
            let name = name.withUTF8Buffer { $0.map { CChar(bitPattern: $0) } }
            bytes = UnsafeBufferPointer(start: text, count: strlen(text)) + name + [0]
        }
    }

    /// - Parameter history: the file of the history; nil for none.
    init(history: Path?) {
        self.history = history
        guard let library = Self.names.lazy.compactMap({ dlopen($0, RTLD_NOW) }).first else {
            return
        }
        func function<Function>(_ name: String, as type: Function.Type) -> Function? {
            dlsym(library, name).map { unsafeBitCast($0, to: type) }
        }
        // Standard output may be a file.
        dlsym(library, "rl_outstream")?
            .assumingMemoryBound(to: UnsafeMutablePointer<FILE>?.self)
            .pointee = fdopen(STDERR_FILENO, "w")
        // For UTF-8 input.
        setlocale(LC_CTYPE, "")
        readLine = function("readline", as: ReadLine.self)
        addToHistory = function("add_history", as: UseText.self)
        guard let history else { return }
        function("stifle_history", as: SetLimit.self)?(Self.historyMax)
        let exists = access(history.bytes, F_OK) == 0
        guard function("read_history", as: UseText.self)?(history.bytes) == 0 || !exists else {
            let path = String(
                decoding: history.bytes.dropLast().map(UInt8.init(bitPattern:)), as: UTF8.self)
            Message.note("\(path) cannot be read as a history; lines are not kept")
            return
        }
        writeHistory = function("write_history", as: UseText.self)
    }

    /// Reads a line without its newline; nil at the end of the input.
    func read(prompt: String) -> String? {
        guard let readLine else {
            Message.write(prompt)
            return Swift.readLine()
        }
        guard let line = readLine(prompt) else { return nil }
        defer { free(line) }
        guard let text = String(validatingCString: line) else {
            Message.error("the line is not UTF-8; it is ignored")
            return ""
        }
        if !text.allSatisfy(\.isWhitespace) {
            _ = addToHistory?(line)
            // After each line, since an interruption ends the process. libedit sets the mode 0600.
            if let history { _ = writeHistory?(history.bytes) }
        }
        return text
    }
}

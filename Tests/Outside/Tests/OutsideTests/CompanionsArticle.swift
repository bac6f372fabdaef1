// Runs the two executables of the article "Companions".

import Foundation
import Testing

@Suite struct CompanionsArticle {
    private final class Program {
        private let process = Process()
        private let pipe = Pipe()

        init(_ name: String, _ log: URL) throws {
            process.executableURL = URL(filePath: CommandLine.arguments[0])
                .deletingLastPathComponent().appending(path: name)
            process.arguments = [log.path]
            process.standardOutput = pipe
            try process.run()
        }

        /// The next bytes of the output.
        func next() -> String {
            String(decoding: pipe.fileHandleForReading.availableData, as: UTF8.self)
        }

        /// The rest of the output, when the program has ended well.
        func end() throws -> String {
            let output = try pipe.fileHandleForReading.readToEnd() ?? Data()
            process.waitUntilExit()
            #expect(process.terminationStatus == 0)
            return String(decoding: output, as: UTF8.self)
        }
    }

    @Test(.enabled(if: FileManager.default.fileExists(atPath: "/proc/locks")))
    func `a widget records while the app runs and while it does not, and both show it`() throws {
        let folder = try Folder()
        let app = try Program("WaterApp", folder.log)
        #expect(app.next() == "0 ml\n")
        #expect(try Program("WaterWidget", folder.log).end() == "200 ml\n")
        #expect(app.next() == "200 ml\n")
        for total in [400, 600] {
            #expect(try Program("WaterWidget", folder.log).end() == "\(total) ml\n")
        }
        #expect(try app.end().hasSuffix("600 ml\n"))
        // The app has closed the log.
        #expect(try Program("WaterWidget", folder.log).end() == "800 ml\n")
        #expect(try Program("WaterApp", folder.log).end() == "800 ml\n")
    }
}

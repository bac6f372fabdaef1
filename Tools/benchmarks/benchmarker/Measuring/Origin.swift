// The origin of a report's figures: the sentence at its start.

import Foundation
import GRDB

/// The circumstances of a run.
struct Origin: Encodable {
    /// `full` or `quick`.
    let form: String
    /// The name of the input.
    let input: String
    let machine: String

    /// - Parameters:
    ///   - full: true for the full form, false for the quick one.
    ///   - input: the name of the input.
    ///   - folder: the folder of the logs.
    init(full: Bool, input: String, _ folder: URL) {
        form = full ? "full" : "quick"
        self.input = input
        machine = Self.machine(folder)
    }

    /// The paragraph in Markdown.
    var markdown: String { "\(machine). Input: \(input), \(form) form.\n\n" }

    /// Describes processor, cores, memory, kernel, file system, and the versions of the contenders.
    private static func machine(_ folder: URL) -> String {
        let info = (try? String(contentsOfFile: "/proc/cpuinfo", encoding: .utf8)) ?? ""
        let model = info.split(separator: "\n").first { $0.hasPrefix("model name") }?
            .split(separator: ":").last.map { $0.trimmingCharacters(in: .whitespaces) }
        let process = ProcessInfo.processInfo
        let memory = Double(process.physicalMemory) / 1_073_741_824
        let swift = shellText("swift --version")?.firstMatch(of: /Swift version ([0-9.]+)/)?.1
        let sqlite = try? DatabaseQueue().read {
            try String.fetchOne($0, sql: "SELECT sqlite_version()")
        }
        let disk = shellText("df --output=source,fstype '\(folder.path)' | tail -n 1")?
            .split(separator: " ")
        var parts = [
            model ?? "unknown processor", "\(process.activeProcessorCount) cores",
            String(format: "%.0f GiB of memory", memory),
            process.operatingSystemVersionString,
        ]
        if let kernel = shellText("uname -sr") { parts.append(kernel) }
        if let disk, disk.count == 2 { parts.append("\(disk[1]) on \(disk[0])") }
        if let swift { parts.append("Swift \(swift)") }
        if let sqlite { parts.append("SQLite \(sqlite)") }
        for (name, package) in [("RocksDB", "rocksdb"), ("LMDB", "lmdb"), ("lz4", "liblz4")] {
            if let version = shellText("pkg-config --modversion \(package)") {
                parts.append("\(name) \(version)")
            }
        }
        return parts.joined(separator: ", ")
    }
}

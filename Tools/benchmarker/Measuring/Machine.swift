// On what a run was made: part of every report.

import Foundation
import GRDB

enum Machine {
    /// Processor, cores, memory, kernel, file system, and the versions of what takes part.
    ///
    /// - Parameter folder: where the logs are.
    static func description(_ folder: URL) -> String {
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

// The process that holds a lock, for messages: a refused caller must know what to close.

#if canImport(Darwin)
    import Darwin
#elseif canImport(Musl)
    import Musl
#else
    import Glibc
#endif

/// The process that holds a lock.
public struct LockHolder: Hashable, Sendable {
    /// The process's number.
    public var processID: Int32
    /// The name of its program, if the system tells it.
    public var processName: String?

    /// Creates a value.
    public init(processID: Int32, processName: String? = nil) {
        self.processID = processID
        self.processName = processName
    }

    /// This process.
    public static var thisProcess: LockHolder {
        let processID = getpid()
        return LockHolder(processID: processID, processName: systemName(of: processID))
    }

    /// True if it is this process.
    public var isThisProcess: Bool { processID == getpid() }

    /// The process for a message, such as `another process (pid 4121, logtool)`.
    package var text: String {
        let name = processName.map { ", \($0)" } ?? ""
        return "\(isThisProcess ? "this" : "another") process (pid \(processID)\(name))"
    }
}

#if os(Linux) || os(Android)
    extension LockHolder {
        /// The process that holds the `flock` of a file, by the kernel's list of locks.
        ///
        /// - Returns: nil if the list cannot be read or does not name a running process: a container may hide both.
        init?(device: UInt64, inode: UInt64) {
            // As glibc's `major` and `minor`, which are macros.
            let major = (device >> 8) & 0xFFF | (device >> 32) & 0xFFFF_F000
            let minor = device & 0xFF | (device >> 12) & 0xFFFF_FF00
            guard let list = Self.systemFile("/proc/locks") else { return nil }
            for line in list.split(separator: "\n") {
                // `1: FLOCK  ADVISORY  WRITE 4121 fe:00:1234567 0 EOF`
                let fields = line.split(separator: " ")
                guard fields.count >= 6, fields[1] == "FLOCK", let processID = Int32(fields[4]),
                    processID > 0
                else { continue }
                let numbers = fields[5].split(separator: ":")
                guard numbers.count == 3, UInt64(numbers[0], radix: 16) == major,
                    UInt64(numbers[1], radix: 16) == minor, UInt64(numbers[2]) == inode
                else { continue }
                guard kill(processID, 0) == 0 || errno == EPERM else { return nil }
                self.init(processID: processID, processName: Self.systemName(of: processID))
                return
            }
            return nil
        }

        private static func systemName(of processID: Int32) -> String? {
            systemFile("/proc/\(processID)/comm").map { String($0.prefix { $0 != "\n" }) }
        }

        /// The content of a file of the kernel, up to 1 MiB. Such files have no size before they are read.
        private static func systemFile(_ path: String) -> String? {
            guard let file = fopen(path, "re") else { return nil }
            defer { fclose(file) }
            var bytes = [UInt8](repeating: 0, count: 1_048_576)
            let count = fread(&bytes, 1, bytes.count, file)
            return String(decoding: bytes[..<count], as: UTF8.self)
        }
    }
#else
    extension LockHolder {
        private static func systemName(of processID: Int32) -> String? { nil }
    }
#endif

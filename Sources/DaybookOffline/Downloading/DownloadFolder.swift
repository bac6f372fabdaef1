// The folder of a manager's partial files, with a folder for each job. DownloadManager owns one.
// Spec/model/downloads.md, DL-14, DL-15, DL-17.

import Daybook
import Foundation

/// The folder of a manager's partial files, and what its jobs have in it and in the file store.
struct DownloadFolder {
    let path: String
    private let fileSystem: any FileSystem
    /// The ids of jobs whose folders may exist.
    private var jobs: Set<String> = []
    /// Images of unfinished jobs that are in the file store, by job. They are retained because no
    /// city references them yet.
    private var retained: [String: [FileID]] = [:]
    /// The locked file that gives one manager exclusive use of the folder.
    private var lock: (any File)?

    init(_ path: String, _ fileSystem: any FileSystem) {
        self.path = path
        self.fileSystem = fileSystem
    }

    /// The path of a job's folder.
    func path(of jobId: String) -> String { path + "/" + jobId }

    // MARK: The lock

    /// Locks the folder. Another manager may hold the lock, or a process whose store was suspended a
    /// moment ago.
    ///
    /// - Returns: false if another manager holds the lock. True also after an I/O error, which the jobs
    ///   will meet and report.
    mutating func acquireLock() -> Bool {
        guard lock == nil else { return true }
        do {
            try Self.create(path, fileSystem)
            let file = try fileSystem.open(path + "/lock", .createIfMissing)
            guard try file.lock() else { return false }
            lock = file
        } catch {}
        return true
    }

    mutating func releaseLock() { lock = nil }

    // MARK: Jobs

    /// Finds the folders that earlier processes have left.
    mutating func findJobs() throws(LogError) {
        do throws(FileError) {
            // Every other name is not a job's folder.
            jobs.formUnion(try fileSystem.list(path).filter { UUID(uuidString: $0)?.text == $0 })
        } catch {
            guard error.code == .notFound else { throw LogError(error) }
        }
    }

    mutating func insert(_ jobId: String) { jobs.insert(jobId) }

    mutating func retain(_ file: FileID, for jobId: String) {
        retained[jobId, default: []].append(file)
    }

    /// The jobs that satisfy a condition and may have a folder.
    func jobs(where condition: (String) -> Bool) -> [String] { jobs.filter(condition) }

    /// The files in the store that the partial files of a job name, unless they are retained already.
    func storedFiles(of jobId: String) -> [FileID] {
        retained[jobId] == nil ? PartialFile.stored(in: path(of: jobId), fileSystem) : []
    }

    /// Deletes a job's folder. If that fails, the next run repeats it.
    ///
    /// - Returns: the files to release.
    mutating func remove(_ jobId: String) -> [FileID] {
        try? Self.remove(path(of: jobId), fileSystem)
        jobs.remove(jobId)
        return retained.removeValue(forKey: jobId) ?? []
    }

    /// Ends the retention of all files.
    ///
    /// - Returns: the files to release.
    mutating func endRetention() -> [FileID] {
        defer { retained = [:] }
        return retained.values.flatMap(\.self)
    }

    // MARK: Any folder

    /// Creates a folder and its parents if they do not exist.
    static func create(_ path: String, _ fileSystem: any FileSystem) throws(DownloadError) {
        try onDisk { () throws(FileError) in try fileSystem.createDirectories(path) }
    }

    /// Deletes a folder with its contents, or another item of that name. A missing item is not an error. A
    /// symbolic link is removed and not followed.
    static func remove(_ path: String, _ fileSystem: any FileSystem) throws(DownloadError) {
        do throws(FileError) {
            try fileSystem.removeAll(path)
        } catch let error where error.code == .notFound {
            return
        } catch { throw DownloadError(error) }
    }
}

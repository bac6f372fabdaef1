// Names the view that is folded at opening in a file of the log's folder, so that a view whose fold ends the process at
// every opening is left out. Between opening and the views. Spec/model/views.md, VIEW-32.

import Foundation
import LogFormat
import LogStorage

/// A view that a store does not fold, since folding one of its events has ended the process at two openings.
public struct StoppedView: Hashable, Sendable, CustomStringConvertible {
    /// The view's name.
    public let name: String
    /// The view's version.
    public let version: Int
    /// The position of the event that the process was folding when it ended.
    public let position: Position

    /// What happened, and what to do.
    public var description: String {
        "the view \(name) is not folded: the process ended at two openings while it folded the event at position "
            + "\(position). Correct the fold of version \(version) and raise the version"
    }
}

/// The file `folding` of a log. Failures to write it are ignored: without it, a fold that ends the process ends the next
/// opening, too.
final class FoldMarker {
    /// A fold that began, or that is not tried again.
    fileprivate struct Fold: Hashable {
        let view: String
        let version: UInt32
        /// The events that were folded when the process ended; one if `view` was a suspect.
        var positions: ClosedRange<Position>
        /// The number of openings in a row that ended in this fold.
        var count = 1
        /// The build of the program; nil at the first opening.
        var build: String?
    }

    private static let bytesMax = 64 * 1024
    private static let stoppedMax = 64

    private let path: String
    /// The log's file system.
    let fileSystem: any FileSystem
    /// Returns the build of this program; nil if that does not count.
    private let build: (() -> String)?
    /// The versions of the known views, by name.
    private let versions: [String: UInt32]
    /// The fold in which the last opening ended.
    private var suspect: Fold?
    /// The same for a view that this program does not know.
    private var unknown: Fold?
    private var stopped: [Fold] = []
    private var stoppedStored: [Fold] = []
    private var isStored = false
    private var file: (any File)?
    private var hasFailed = false

    /// Reads the file of a log. O(bytes).
    ///
    /// - Parameters:
    ///   - views: the views to fold.
    ///   - keepingUnknown: true to keep what is stored of other views.
    ///   - anyBuild: true to leave out views that another program has stopped, as a process does that only reads.
    ///   - build: returns a text that differs in another build of the program.
    init(
        of directory: String, _ fileSystem: any FileSystem, _ views: [any Projection.Type],
        keepingUnknown: Bool = false, ofAnyBuild anyBuild: Bool = false,
        build: @escaping () -> String = { ProgramBuild.current }
    ) {
        path = directory + "/" + LogDirectory.folding
        self.fileSystem = fileSystem
        self.build = anyBuild ? nil : build
        versions = Dictionary(
            views.map { ($0.name, UInt32(clamping: $0.version)) }, uniquingKeysWith: max)
        guard let members = Self.read(path, fileSystem) else { return }
        isStored = true
        if case .array(let list)? = members["stopped"] {
            stoppedStored = list.prefix(Self.stoppedMax).compactMap { Fold($0) }
        }
        stopped = stoppedStored.filter {
            versions[$0.view] == nil ? keepingUnknown : isOfThisProgram($0)
        }
        guard var fold = members["folding"].flatMap({ Fold($0) }) else { return }
        if fold.count >= 2, isOfThisProgram(fold), stopped.count < Self.stoppedMax {
            stopped.append(fold)
        } else if versions[fold.view] == fold.version {
            fold.count = 1
            suspect = fold
        } else if versions[fold.view] == nil, keepingUnknown {
            unknown = fold
        }
    }

    /// True if this program folds the view as the one did that ended.
    private func isOfThisProgram(_ fold: Fold) -> Bool {
        versions[fold.view] == fold.version && (build == nil || fold.build == build?())
    }

    /// The views that are not folded.
    var stoppedViews: [StoppedView] {
        stopped.filter { versions[$0.view] != nil }.map {
            StoppedView(
                name: $0.view, version: Int($0.version), position: $0.positions.lowerBound)
        }
    }

    /// True if the last opening ended while it folded some of these events into the view.
    func isSuspect(
        _ view: String, _ version: UInt32, in positions: ClosedRange<Position>
    ) -> Bool {
        guard let suspect else { return false }
        return suspect.view == view && suspect.version == version
            && suspect.positions.overlaps(positions)
    }

    /// Writes which view is folded next. Not synced: the file survives the end of the process without.
    func note(_ view: String, _ version: UInt32, _ positions: ClosedRange<Position>) {
        var fold = Fold(view: view, version: version, positions: positions)
        if let suspect, isSuspect(view, version, in: positions) {
            fold.count = suspect.count + 1
            fold.build = build?()
        }
        write(stopped, fold)
    }

    /// Removes the file, or leaves in it what the next opening must know. To be called if the process goes on.
    func finish() {
        if stopped.isEmpty, unknown == nil {
            if isStored { try? fileSystem.remove(path) }
        } else if file != nil || suspect != nil || stopped != stoppedStored {
            write(stopped, unknown)
            try? file?.sync()
        }
        file = nil
    }

    // MARK: The file

    private static func read(
        _ path: String, _ fileSystem: any FileSystem
    ) -> [String: JSONValue]? {
        guard let file = try? fileSystem.open(path, .read) else { return nil }
        // A file that is no marker is replaced.
        guard let size = try? file.size(), size <= bytesMax,
            let bytes = try? file.read(at: 0, count: size),
            let end = bytes.firstIndex(of: UInt8(ascii: "\n")),
            case .object(let members)? = try? JSONValue(Array(bytes[..<end]).span.bytes)
        else { return [:] }
        return members
    }

    /// Replaces the first line of the file. What is stored after it is left of a longer line.
    private func write(_ stopped: [Fold], _ fold: Fold?) {
        guard !hasFailed else { return }
        var line = JSONObjectWriter()
        if !stopped.isEmpty {
            line.appendMember(
                literal: "stopped", raw: JSONObjectWriter.array(stopped.map(\.json)))
        }
        if let fold { line.appendMember(literal: "folding", raw: fold.json) }
        do throws(FileError) {
            let opened: any File
            if let file {
                opened = file
            } else {
                opened = try fileSystem.open(path, .createIfMissing)
            }
            (file, isStored) = (opened, true)
            try opened.write(line.finished() + [UInt8(ascii: "\n")], at: 0)
        } catch { hasFailed = true }
    }
}

extension FoldMarker.Fold {
    fileprivate var json: [UInt8] {
        var writer = JSONObjectWriter()
        writer.appendMember(literal: "view", view)
        writer.appendMember(literal: "version", Int(version))
        writer.appendMember(literal: "first", positions.lowerBound.description)
        writer.appendMember(literal: "last", positions.upperBound.description)
        writer.appendMember(literal: "openings", count)
        if let build { writer.appendMember(literal: "build", build) }
        return writer.finished()
    }

    /// Reads what `json` gives; nil for anything else.
    fileprivate init?(_ json: JSONValue) {
        guard case .object(let members) = json, let view = members["view"]?.stringValue,
            case .number(let version)? = members["version"],
            let version = version.integerValue.flatMap({ UInt32(exactly: $0) }),
            let first = members["first"]?.stringValue.flatMap({ UInt64($0) }),
            let last = members["last"]?.stringValue.flatMap({ UInt64($0) }), first <= last,
            case .number(let count)? = members["openings"], let count = count.integerValue,
            count > 0
        else { return nil }
        self.init(
            view: view, version: version, positions: Position(first)...Position(last),
            count: min(count, 2), build: members["build"]?.stringValue)
    }
}

/// The build of the running program.
enum ProgramBuild {
    /// The size of the program's executable and the time at which it was changed; empty where they are not known.
    static let current: String = {
        #if os(WASI)
            return ""
        #else
            guard let path = Bundle.main.executablePath,
                let attributes = try? FileManager.default.attributesOfItem(atPath: path),
                let size = attributes[.size] as? NSNumber,
                let time = attributes[.modificationDate] as? Date
            else { return "" }
            return "\(size) \(time.timeIntervalSince1970)"
        #endif
    }()
}

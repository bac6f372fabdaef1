// A process that appends to a log as a companion until it is killed. Spec/format/companions.md.

import DaybookOffline
import DaybookTestKit
import Foundation

/// The work of one process.
package struct CompanionChild: Sendable {
    private let folder: String
    private let name: String

    /// - Parameters:
    ///   - folder: the log's folder.
    ///   - name: the companion's name.
    package init(folder: String, name: String) { (self.folder, self.name) = (folder, name) }

    /// Appends until the process is killed. Writes the id of each acknowledged event to standard output.
    package func run() async throws {
        let companion = try await OfflineStore.openCompanion(at: URL(filePath: folder), name: name)
        var number = 0
        while true {
            number += 1
            do {
                let event = try await companion.append(
                    EventDraft(ValueSet(key: name, value: "\(number)")))
                // Without a buffer, which a kill would lose.
                FileHandle.standardOutput.write(Data("\(event.id.uuidString)\n".utf8))
            } catch is CompanionFullError {
                try await Task.sleep(for: .milliseconds(20))
            }
        }
    }
}

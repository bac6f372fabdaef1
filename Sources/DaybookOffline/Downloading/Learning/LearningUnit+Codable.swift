// A unit of learning material from a value of the app. Spec/model/learning.md, LRN-1.

import Foundation

extension LearningUnit {
    /// Creates a unit whose content is a value of the app: a JSON object.
    ///
    /// - Throws: what the encoder throws; `EventError` (`invalidData`) for a value that is no JSON object.
    public init(
        encoding content: some Encodable, files: [String] = [],
        encoder: JSONEncoder = JSONEncoder()
    ) throws {
        self.init(
            content: try LearningCommands.json(of: content, encoder: encoder), files: files)
    }
}

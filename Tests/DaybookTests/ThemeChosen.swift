// An app's own event type, for tests of what apps declare.

@testable import DaybookOffline

struct ThemeChosen: EventPayload, Codable {
    static let type = "com.example.theme.chosen"
    var name: String
}

// The screen of the article "Getting started with Daybook". It is compiled only where SwiftUI exists; on Linux
// Tools/checks/appletypes type-checks it against stubs.

#if canImport(SwiftUI)
    import Daybook
    import SwiftUI

    // OwnEvents-6 begins
    struct Minutes: View {
        @Queried private var minutes: Int

        init(_ store: EventStore) {
            _minutes = Queried(store.query(Habits.self) { $0.minutes["reading"] ?? 0 })
        }

        var body: some View { Text("\(minutes) minutes") }
    }
// OwnEvents-6 ends
#endif

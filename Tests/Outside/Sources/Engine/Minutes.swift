// The screen of the article "Getting started with Daybook". It is compiled only where SwiftUI exists; on Linux
// Tools/checks/appletypes type-checks it against stubs.

#if canImport(SwiftUI)
    import Daybook
    import SwiftUI

    // OwnEvents-6 begins
    struct Minutes: View {
        @State private var minutes: Observed<Int>

        init(_ store: EventStore) {
            let query = store.query(Habits.self) { $0.minutes["reading"] ?? 0 }
            _minutes = State(initialValue: Observed(query))
        }

        var body: some View { Text("\(minutes.value) minutes") }
    }
// OwnEvents-6 ends
#endif

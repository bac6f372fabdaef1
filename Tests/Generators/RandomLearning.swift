// Events of few learners, courses, lessons and sessions, so that they meet. Feeds EventHistory; part
// of RandomEvents.

import DaybookOffline
import DaybookTestKit

extension Choices {
    /// The data of any event of learning that stays on the device.
    package mutating func learningPayload() throws -> any EventPayload {
        try payload(ofAny: [
            UserStored.self, CombinationSelected.self, CoursesListed.self, LessonStored.self,
            LessonStored.self, LessonRemoved.self, ReviewStored.self, ReviewStored.self,
            ReviewRemoved.self, VocabularyCached.self,
        ])
    }
}

// Events of few users, courses, lessons and sessions, so that they affect each other. Part of RandomEvents.

import DaybookOffline
import DaybookTestKit

extension Choices {
    /// Draws the data of any learning event that stays on the device.
    package mutating func learningPayload() throws -> any EventPayload {
        try payload(ofAny: [
            UserStored.self, CombinationSelected.self, CoursesListed.self, LessonStored.self,
            LessonStored.self, LessonRemoved.self, ReviewStored.self, ReviewStored.self,
            ReviewRemoved.self, VocabularyCached.self,
        ])
    }
}

// The error of all secret stores. It never contains the secret. Spec/operations/secrets.md.

import Foundation

/// A failure of a secret store.
public struct SecretStoreError: Error, Hashable, Sendable, CustomStringConvertible {
    /// The kinds of failures. The raw value is stable and machine-readable.
    public enum Code: String, Sendable, CaseIterable {
        /// The file was encrypted with another key.
        case wrongKey = "wrong-key"
        /// The stored data is damaged.
        case damaged
        /// The stored data was written by a newer version.
        case newerVersion = "newer-version"
        /// The data would exceed the store's size limit. Nothing was changed.
        case tooLarge = "too-large"
        /// A name is empty or too long.
        case badName = "bad-name"
        /// The encryption key has the wrong length.
        case badKey = "bad-key"
        /// Another process is writing. Nothing was changed.
        case busy
        /// The device is locked, or the app may not reach the store.
        case locked
        /// A symbolic link or a folder has the file's name, or other users may use the file. Nothing was changed.
        case unsafePlace = "unsafe-location"
        /// The device is full. Nothing was changed.
        case diskFull = "disk-full"
        /// A system call failed. Nothing was changed.
        case io
        /// The value was written, but may not survive a power failure.
        case indeterminate
    }

    /// The kind of failure.
    public var code: Code
    /// The file, the service of the keychain, or the name of the secret.
    public var location: String
    /// What happened, and what to do if that is not obvious.
    public var detail: String

    /// Creates an error. `detail` must not contain any part of a secret.
    public init(_ code: Code, location: String, _ detail: String) {
        self.code = code
        self.location = location
        self.detail = detail
    }

    /// Location and detail in one line.
    public var description: String { "\(location): \(detail)" }
}

extension SecretStoreError: LocalizedError {
    /// The same as `description`.
    public var errorDescription: String? { description }

    /// The remedy.
    public var recoverySuggestion: String? {
        switch code {
        case .wrongKey: "Open the store with the key that it was written with, or sign in again."
        case .damaged: "Remove the stored secrets and sign in again."
        case .newerVersion: "Update the app."
        case .tooLarge, .badName, .badKey: "Correct the value that the description names."
        case .busy: "Try again."
        case .locked: "Unlock the device, then try again."
        case .unsafePlace:
            "Remove the symbolic link or the folder, set the file's mode to 0600 (chmod), or choose "
                + "another path."
        case .diskFull: "Free some space, then try again."
        case .io: "Try again. If it fails again, check the device."
        case .indeterminate: "Write the value again."
        }
    }
}

// The one error of all secret stores: what, where, what to do; never the secret. Spec/operations/secrets.md.

import Foundation

/// A failure of a secret store.
public struct SecretStoreError: Error, Hashable, Sendable, CustomStringConvertible {
    /// What kind of failure it is. The raw value is stable and machine-readable.
    public enum Code: String, Sendable, CaseIterable {
        /// What is stored was sealed under another key.
        case wrongKey = "wrong-key"
        /// What is stored is not what was written.
        case damaged
        /// What is stored was written by a newer version.
        case newerVersion = "newer-version"
        /// More than the store holds. Nothing was changed.
        case tooLarge = "too-large"
        /// A name is empty or too long.
        case badName = "bad-name"
        /// The key to seal with has the wrong length.
        case badKey = "bad-key"
        /// Another process is writing. Nothing was changed.
        case busy
        /// The device is locked, or the app may not reach the store.
        case locked
        /// A symbolic link or a folder has the file's name. Nothing was changed.
        case unsafePlace = "unsafe-place"
        /// The device is full. Nothing was changed.
        case diskFull = "disk-full"
        /// The system failed an operation. Nothing was changed.
        case io
        /// The value is written, and whether it outlives a power cut is not known.
        case indeterminate
    }

    /// The kind of failure.
    public var code: Code
    /// The file, or the service of the keychain.
    public var place: String
    /// What happened, with what to do where that is not plain.
    public var detail: String

    /// Creates an error. `detail` must hold nothing of a secret.
    public init(_ code: Code, place: String, _ detail: String) {
        self.code = code
        self.place = place
        self.detail = detail
    }

    /// Place and detail in one line.
    public var description: String { "\(place): \(detail)" }
}

extension SecretStoreError: LocalizedError {
    /// The same as `description`.
    public var errorDescription: String? { description }

    /// What to do next.
    public var recoverySuggestion: String? {
        switch code {
        case .wrongKey: "Open the store with the key with which it was written, or sign in again."
        case .damaged: "Remove the stored secrets and sign in again."
        case .newerVersion: "Update the app."
        case .tooLarge, .badName, .badKey: "Correct the value that the description names."
        case .busy: "Try again."
        case .locked: "Unlock the device, then try again."
        case .unsafePlace: "Remove the symbolic link or the folder, or choose another path."
        case .diskFull: "Free some space, then try again."
        case .io: "Try again. If it fails again, check the device."
        case .indeterminate: "Write the value again."
        }
    }
}

// The release of the library. Spec/operations/releases.md.

/// The release of the library and of its tools, after Semantic Versioning 2.0.0.
///
/// The versions of the log's format and of the protocol are numbers of their own, and change more rarely.
public enum DaybookVersion {
    /// `major.minor.patch`.
    public static let text = "0.9.0"
}

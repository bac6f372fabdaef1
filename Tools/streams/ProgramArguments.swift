// The arguments of a process as the system passed them. Swift's CommandLine.arguments, which ArgumentParser reads,
// replaces bytes that are not UTF-8: two names would become one, and a command would open, create or replace
// another file than the named one. Spec/operations/logtool.md, TOOL-57.

import Foundation

/// The check that every tool makes before it reads its arguments.
package enum ProgramArguments {
    /// The exit code of wrong usage, after sysexits.h.
    private static let usage: Int32 = 64

    /// Ends the process with 64 and a message if an argument is not UTF-8.
    ///
    /// - Parameter program: the name at the start of the message.
    package static func requireUTF8(of program: String) {
        for index in 1..<max(1, Int(CommandLine.argc)) {
            guard let argument = CommandLine.unsafeArgv[index],
                String(validatingCString: argument) == nil
            else { continue }
            let bytes = UnsafeRawBufferPointer(start: argument, count: strlen(argument))
            _ = StandardStream.error.write(
                Array(
                    """
                    \(program): argument \(index) is not UTF-8: \(escaped(bytes)); rename the file, or \
                    name it by a symbolic link whose path is UTF-8

                    """.utf8))
            exit(usage)
        }
    }

    /// The arguments after the program's name, with `--name=value` as two arguments where the value begins with a
    /// combining character. ArgumentParser splits at Swift's characters, and such a value would join the `=` to
    /// another one.
    package static var separated: [String] { separated(Array(CommandLine.arguments.dropFirst())) }

    /// - Parameter arguments: the arguments as the system passed them; those after `--` stay as they are.
    package static func separated(_ arguments: [String]) -> [String] {
        let end = arguments.firstIndex(of: "--") ?? arguments.endIndex
        let options = arguments[..<end].flatMap { argument -> [String] in
            let scalars = argument.unicodeScalars
            guard argument.utf8.starts(with: "--".utf8), let sign = scalars.firstIndex(of: "="),
                scalars.index(after: sign) < scalars.endIndex,
                argument.index(after: sign) > scalars.index(after: sign)
            else { return [argument] }
            return [String(scalars[..<sign]), String(scalars[scalars.index(after: sign)...])]
        }
        return options + arguments[end...]
    }

    /// False if the name of the working folder is not UTF-8: Foundation then resolves relative paths to another one.
    package static var workingFolderIsUTF8: Bool {
        guard let path = getcwd(nil, 0) else { return false }
        defer { free(path) }
        return String(validatingCString: path) != nil
    }

    /// Printable ASCII as it is, every other byte as `\xHH`.
    private static func escaped(_ bytes: some Sequence<UInt8>) -> String {
        bytes.reduce(into: "") { text, byte in
            if 0x20...0x7E ~= byte {
                text.unicodeScalars.append(Unicode.Scalar(byte))
            } else {
                text += "\\x" + String(byte >> 4, radix: 16) + String(byte & 15, radix: 16)
            }
        }
    }
}

// System calls that are interrupted by signals or transfer less than requested, which POSIX permits: a
// preloaded library does both to a real process.

import DaybookTestKit
import Foundation
import TestSupport
import Testing

#if os(Linux)
    @Suite struct InterruptedCallsTests {
        /// The preloaded library. Interrupts every other call, limits the others to a part of the bytes, and
        /// prints the counts at the end.
        private static let library = """
            #define _GNU_SOURCE
            #include <dlfcn.h>
            #include <errno.h>
            #include <stdio.h>
            #include <stdlib.h>
            #include <unistd.h>

            static _Atomic unsigned long calls, interrupted, shortened;

            static int interrupts(void) {
                if (calls++ % 2) return 0;
                interrupted++;
                errno = EINTR;
                return 1;
            }

            static size_t part(size_t count) {
                if (count < 2) return count;
                shortened++;
                return 1 + (calls * 2654435761u) % (count - 1);
            }

            #define REAL(type, name) ((type)dlsym(RTLD_NEXT, name))

            ssize_t pread(int file, void *bytes, size_t count, off_t offset) {
                if (interrupts()) return -1;
                return REAL(ssize_t (*)(int, void *, size_t, off_t), "pread")(
                    file, bytes, part(count), offset);
            }

            ssize_t pwrite(int file, const void *bytes, size_t count, off_t offset) {
                if (interrupts()) return -1;
                return REAL(ssize_t (*)(int, const void *, size_t, off_t), "pwrite")(
                    file, bytes, part(count), offset);
            }

            int fdatasync(int file) {
                return interrupts() ? -1 : REAL(int (*)(int), "fdatasync")(file);
            }

            int fsync(int file) { return interrupts() ? -1 : REAL(int (*)(int), "fsync")(file); }

            int flock(int file, int how) {
                return interrupts() ? -1 : REAL(int (*)(int, int), "flock")(file, how);
            }

            int ftruncate(int file, off_t size) {
                return interrupts() ? -1 : REAL(int (*)(int, off_t), "ftruncate")(file, size);
            }

            int posix_fallocate(int file, off_t offset, off_t size) {
                if (interrupts()) return EINTR;
                return REAL(int (*)(int, off_t, off_t), "posix_fallocate")(file, offset, size);
            }

            __attribute__((destructor)) static void tell(void) {
                FILE *file = fopen(getenv("CALLS_TOLD_IN"), "w");
                if (!file) return;
                fprintf(file, "%lu %lu", interrupted, shortened);
                fclose(file);
            }
            """

        @Test(.verifies("REC-8"))
        func `interrupted calls and short transfers change nothing`() throws {
            let folder = try TemporaryFolder()
            defer { folder.remove() }
            let source = try folder.file("calls.c", content: Self.library)
            let library = folder.path + "/calls.so"
            let compiler = Process()
            compiler.executableURL = URL(filePath: "/usr/bin/env")
            compiler.arguments = ["cc", "-shared", "-fPIC", "-o", library, source.path, "-ldl"]
            try compiler.runAlone()
            compiler.waitUntilExit()
            try #require(compiler.terminationStatus == 0, "no C compiler to try this with")

            let told = folder.path + "/told"
            var interrupted = 0
            var shortened = 0
            func logtool(_ command: String, _ arguments: String...) throws -> String {
                let run = try ToolRun.logtool(
                    command, arguments,
                    environment: ["LD_PRELOAD": library, "CALLS_TOLD_IN": told])
                #expect(run.status == 0, "\(command) \(arguments): \(run.messages)")
                let counts = try String(contentsOfFile: told, encoding: .utf8).split(separator: " ")
                interrupted += Int(counts[0]) ?? 0
                shortened += Int(counts[1]) ?? 0
                return run.output
            }
            let plain = folder.path + "/plain"
            #expect(try ToolRun.logtool("import", plain, Tool.sample).status == 0)
            _ = try logtool("import", folder.log, Tool.sample, "--batch", "7")
            _ = try logtool("compact", folder.log)
            let again = try logtool("import", folder.log, Tool.sample)
            #expect(again.hasPrefix(#"{"appended":0,"#))
            _ = try logtool("verify", folder.log)
            for view in ["cities", "notes", "preferences", "progress"] {
                let expected = try ToolRun.logtool("views", plain, view).output
                #expect(!expected.isEmpty)
                #expect(try logtool("views", folder.log, view) == expected)
            }
            #expect(interrupted > 100, "\(interrupted), \(shortened)")
            #expect(shortened > 100, "\(interrupted), \(shortened)")
        }

        @Test(.verifies("REC-8"))
        func `a process that can open no more files reports it, and keeps what it acknowledged`()
            throws
        {
            var refused = 0
            // With fewer, the system's own libraries may crash the process.
            for limit in 7...24 {
                let folder = try TemporaryFolder()
                defer { folder.remove() }
                let tool = Tool.binary("logtool").path
                let run = try ToolRun.shell(
                    "ulimit -n \(limit); exec '\(tool)' import '\(folder.log)' '\(Tool.sample)' "
                        + "--batch 10 --ack")
                #expect([0, 74].contains(run.status), "\(limit): \(run.messages)")
                if run.status == 74 {
                    refused += 1
                    #expect(run.messages.contains("open files"), "\(limit): \(run.messages)")
                }
                let acknowledged = run.output.split(separator: "\n").count {
                    UUID(uuidString: String($0.prefix(36))) != nil
                }
                guard acknowledged > 0 else { continue }
                #expect(try ToolRun.logtool("verify", folder.log).status == 0)
                let lines = try ToolRun.logtool("inspect", folder.log, "--events").output
                #expect(lines.split(separator: "\n").count >= acknowledged)
            }
            #expect(refused > 0)
        }
    }
#endif

// logtool mcp: lets a language model ask a log.

import ArgumentParser
import DaybookOffline
import Foundation
import LogStorage

struct MCPCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "mcp",
        abstract: "Lets a language model ask a log: a server of the Model Context Protocol.",
        discussion: """
            Speaks the protocol over standard input and output until the input ends. Tools: \
            \(LogToolCall.all.map(\.name).joined(separator: ", ")). Only reads, without the log's \
            lock, so a writer may continue. What a model reads goes where its program sends it: the \
            log has what users wrote.

            Example: logtool mcp ./log
            """)

    @Argument(help: "The log's folder.", completion: .directory)
    var directory: String

    func run() async throws {
        try await Exit.mapping {
            _ = try LogReader(directory).files()
            let server = ModelContextServer(directory)
            let result = await Interruption.result {
                try await withTaskCancellationHandler {
                    try await server.run()
                } onCancel: {
                    // The read of standard input cannot be interrupted.
                    Task {
                        await server.cancelCalls()
                        Foundation.exit(EXIT_SUCCESS)
                    }
                }
            }
            try result.get()
        }
    }
}

// The timers and counters of a store. Created once, because each creation calls the backend under its lock.

#if INSTRUMENTATION
    import CoreMetrics

    /// A timer and a counter for each operation, and a counter for each amount.
    final class MetricHandles: Sendable {
        private let operations: [Instruments.Operation: (duration: Timer, failures: Counter)]
        private let amounts: [Instruments.Amount: Counter]

        init(_ factory: any MetricsFactory) {
            operations = Dictionary(
                uniqueKeysWithValues: Instruments.Operation.allCases.map { operation in
                    let duration = Timer(label: operation.durationLabel, factory: factory)
                    let failures = Counter(label: operation.failuresLabel, factory: factory)
                    return (operation, (duration, failures))
                })
            amounts = Dictionary(
                uniqueKeysWithValues: Instruments.Amount.allCases.map { amount in
                    (amount, Counter(label: amount.rawValue, factory: factory))
                })
        }

        /// Records the duration of an operation, in nanoseconds.
        func record(_ nanoseconds: Int64, of operation: Instruments.Operation, hasFailed: Bool) {
            guard let handles = operations[operation] else { return }
            handles.duration.recordNanoseconds(nanoseconds)
            if hasFailed { handles.failures.increment() }
        }

        func count(_ amount: Instruments.Amount, _ value: Int) {
            amounts[amount]?.increment(by: value)
        }
    }
#endif

// A storage also reads and answers batches, so this module exports SyncServerBatch, which needs no
// database, and the verdicts' names.

@_exported import SyncServerBatch
@_exported import SyncWire

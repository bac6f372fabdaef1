// A storage also reads and answers batches, so this module exports SyncServerBatch, which needs no
// database.

@_exported import SyncServerBatch

// Whoever stores events also reads and answers batches: the parts of SyncServerBatch, which needs no
// database, come with this module.

@_exported import SyncServerBatch

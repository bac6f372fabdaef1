import LogStorage

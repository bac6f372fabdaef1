#pragma once

// The SQL of each migration, which ends with a zero byte, in order; then a null pointer.
const char *const *postgresql_migrations(void);
